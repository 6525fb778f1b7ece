"""Commands made of annotated functions."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from rpexplore.cli.commands import Argument, Group, Option, Ratio, command

Depth = StrEnum("Depth", {"TWO_WAY": "two-way", "ALL": "all"})


def survey(
    codebook: Annotated[Path, Argument(metavar="CODEBOOK", help="The attributes.")],
    out_file: Annotated[Path, Option(metavar="FILE", help="Where it goes.")],
    others: Annotated[list[Path] | None, Argument(metavar="OTHER", help="More.")] = None,
    depth: Annotated[Depth, Option(help="How deep.")] = Depth.TWO_WAY,
    limit: Annotated[int | None, Option("-n", "--at-most", min=1, help="How many.")] = None,
    share: Annotated[float, Option(help="Which share.")] = 0.5,
    note: Annotated[str, Option(help="A remark.")] = "",
    name: Annotated[list[str] | None, Option(help="A name.")] = None,
    force: Annotated[bool, Option(help="Overwrite.")] = False,
) -> None:
    """Do it."""
    click.echo([codebook, out_file, others, depth, limit, share, note, name, force])


def said(*arguments: str) -> str:
    result = CliRunner().invoke(command(survey), arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_values_have_the_types_of_the_parameters():
    expected = [Path("c"), Path("o"), (), Depth.TWO_WAY, None, 0.5, "", (), False]
    assert said("c", "--out-file", "o") == str(expected)
    given = ["c", "d", "e", "--out-file", "o", "--depth", "all", "--at-most", "3", "--share", "1"]
    given += ["--name", "a", "--name", "b", "--note", "x", "--force"]
    others, names = (Path("d"), Path("e")), ("a", "b")
    expected = [Path("c"), Path("o"), others, Depth.ALL, 3, 1.0, "x", names, True]
    assert said(*given) == str(expected)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--out-file", "o"], "Missing argument 'CODEBOOK'"),
        (["c"], "Missing option '--out-file'"),
        (["c", "--out-file", "o", "--depth", "TWO_WAY"], "is not one of 'two-way', 'all'"),
        (["c", "--out-file", "o", "-n", "0"], "0 is not in the range x>=1"),
        (["c", "--out-file", "o", "--share", "half"], "'half' is not a valid float"),
    ],
)
def test_wrong_usage_is_refused(arguments, refusal):
    result = CliRunner().invoke(command(survey), arguments)
    assert result.exit_code == 2
    assert refusal in result.stderr


@pytest.mark.parametrize("typed", ["20%", "20 %", "0.2", "1/5"])
def test_a_share_may_be_typed_in_per_cent(typed):
    def verb(limit: Annotated[Ratio, Option(help="Largest CV.")] = Ratio(0.5)) -> None:  # noqa: B008
        click.echo(limit)

    assert CliRunner().invoke(command(verb), ["--limit", typed]).stdout == "0.2\n"
    assert CliRunner().invoke(command(verb), []).stdout == "0.5\n"
    refused = CliRunner().invoke(command(verb), ["--limit", "a fifth"])
    assert "'a fifth' is no number; write 0.2, 1/5 or 20%." in refused.stderr


def test_help_names_arguments_options_and_defaults():
    text = " ".join(said("--help").split())
    assert "survey [OPTIONS] CODEBOOK [OTHER]... Do it." in text
    assert "CODEBOOK The attributes. [OTHER]... More." in text
    assert "--out-file FILE Where it goes. [required]" in text
    assert "--depth [two-way|all] How deep. [default: two-way]" in text
    assert "--share FLOAT Which share. [default: 0.5]" in text
    assert "--note TEXT A remark. --name" in text


def test_a_group_lists_its_commands_as_they_were_added():
    group = Group(commands=[command(survey, name="b"), command(survey, name="a")])
    text = CliRunner().invoke(group, ["--help"]).output
    assert text.index("  b  Do it.") < text.index("  a  Do it.")


@dataclass(frozen=True, kw_only=True)
class Common:
    limit: Annotated[int | None, Option(min=1, help="How many.")] = None
    name: Annotated[list[str] | None, Option(help="A name.")] = None


def test_commands_share_a_list_of_options():
    def first(common: Common, force: Annotated[bool, Option(help="Overwrite.")] = False) -> None:
        click.echo([common.limit, common.name, force])

    def second(common: Common) -> None:
        click.echo([common.limit])

    runner = CliRunner()
    assert runner.invoke(command(first), ["--limit", "2", "--name", "a"]).stdout == (
        "[2, ('a',), False]\n"
    )
    assert runner.invoke(command(second), []).stdout == "[None]\n"
    assert "0 is not in the range" in runner.invoke(command(second), ["--limit", "0"]).stderr
    assert [one.name for one in command(first).params] == ["limit", "name", "force"]
