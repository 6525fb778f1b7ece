"""The arguments and options of the command line, one name each for all verbs that have them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click

from rpexplore.cli.commands import Option, Ratio, RecordCount, argument, flag, option
from rpexplore.workload.bases import BASES

_TABLE = (
    "One table by its attributes; total is the total. With a level of areas among them it is in "
    "each area of that level: municipality,sex,age. A name with a comma in it stands in double "
    "quotation marks."
)
_SHARE = (
    "The share that a part has of the budget, exact: tables=1/2. The parts are tables, areas "
    "(tables in areas), counts and rounds (--adaptive); the shares of all sum to 1. Without it the "
    "budget is split so that the objective is best. Repeat it for more."
)
_LEDGER = (
    "The ledger: a file, or postgresql:NAME for one in PostgreSQL, by the name of a connection; "
    "else the file in the folder of the data."
)
_FORGET_LEDGER = (
    "Give up a ledger that these data were charged in and that is lost for good. What is known of "
    "it is kept: what was spent, the strictest limit, every demand for approvals. The entry says "
    "who gave it up."
)
_MERGE_LEDGER = (
    "Take over all entries of another ledger into the one of --ledger, each once, with the "
    "strictest limits and every demand; the other one is closed then. Takes no data."
)
_CREATE_LEDGER = (
    "Make or renew the tables of a ledger in PostgreSQL, as their owner; takes no data."
)
_SUM = (
    "An attribute of amounts (with bounds in the codebook) whose sum, mean and number of records "
    "are wanted in each group of --by; sums, counts and means always come together. For more, each "
    "of which has tables of its own, name several, separated by commas, or repeat it."
)
_MEAN = "The same as --sum: sums, counts and means always come together."
_BY = (
    "The attributes that sums are by, separated by commas: region,tenure; total for one sum of "
    "all, which is also what there is without --by. Repeat it for more tables."
)
_TABLES = (
    "A CSV file of tables, with a column attributes (written as for --table, in quotation marks; "
    "or separated by ×; without levels) and, if wanted, weight, target (written as for --target) "
    "and required (yes or no)."
)
_TARGET = (
    "Wanted accuracy of the cells of a table: a standard error (age,sex=20), a margin of error "
    "(age,sex=±50 at 95 %; +-50 does as well), or a share of an expected count (age,sex=5 % of "
    "1000). With required behind it, it has to be met: age,sex=20 required. Without a table (20) "
    "it is for all tables that have no other."
)
_TABLES_MINIMUM_BUDGET = (
    "Instead of a budget: the smallest one that meets all targets (targets), or the required ones "
    "(required), stated as ε where there is a --delta, else as ρ. Tables without such a target get "
    "a little more; the loss is max --relative-to target where every table has a target, else "
    "required, with all these targets as required ones. Of tables in areas and of own counts it "
    "is for all targets, so say targets."
)
_BASIS = (
    "The basis of an attribute, other than single values (not in tables that name a level): "
    + ", ".join(basis.option_help for basis in BASES.values() if basis.option_help)
    + ". With @ and a table, in that table only: age=prefix@age,sex. Repeat it for more."
)
_UNIFORM_REFERENCE = (
    "Measure attributes with another basis as classical ResidualPlanner+ does: totals are "
    "spread evenly over the values, which is less accurate."
)
_PERSON = (
    "Protect a person with at most M records, rather than one record. Larger M = less accurate "
    "for the same budget."
)
_UNIT = (
    "The word for who is protected, in the singular, such as household, enterprise or patient; "
    "person if left out. It changes texts, and no number."
)
_DISTINCT = (
    "Count the distinct values of this column, such as the number of the household, in the place "
    "of records: one record of each is counted, and each is protected, however many records it "
    "has. What is counted must be the same on all records of one."
)
_PERIOD = (
    "Of a panel: the attribute of which a person has at most one record for each value, such as "
    "quarter. Goes with --max-periods, in the place of --records-per-person, and costs less."
)
_EXACT = (
    "A total that is released as it is, without noise, such as state or state,sex; within some "
    "table. With areas: area@county, the number of records of each county and what is above, or a "
    "table of the top area. The promise is then about changes of records that keep it, and not "
    "about what it tells. Repeat it for more."
)
_MAX_PERIODS = "In how many periods a person can have a record, at most."
_NEIGHBOURS = (
    "What the promise compares: the data with a record more or less (add-remove), or with another "
    "record in its place (replace). With replace the number of records is public, and exact."
)
_DIRECTION = "Smaller = more private, less accurate."
_QUERY_ATTRIBUTES = (
    "The attributes that own counts are about, separated by commas; else those that the "
    "conditions name, or for a CSV file with coefficients all of the codebook, of at most 1,024 "
    "combinations of values."
)
_QUERIES = (
    "Own counts: a text file with one a line, written as for --count, or a .csv file with "
    "the columns name, condition, by and target, or as `rpexplore counts template` begins one."
)
_QUERY = (
    "One count of your own: name: condition ± margin, such as 'adults: age >= 18 ± 50'. Behind @ a "
    "target may be a standard error (@ 20) or a share of a count (@ 5 % of 1000). 'age >= 18 by "
    "sex, region@groups ± 50' stands for a count of each combination; 'sum(income) where age >= 18 "
    "± 20000' adds up amounts. Repeat it for more."
)
_QUERY_TARGET = "The target of own counts that have none: ±50, 20, or 5 % of 1000."
_PRESET_ROLE = (
    "With a preset: the attribute that has a role, such as race=eth, where the guess is wrong; "
    "race= leaves the role out. Repeat it for more."
)
_PRESET_CATEGORY = (
    "With a preset: what a value stands for, such as 'race:2+=Two or more races'. Repeat it for "
    "more."
)
_DATA = (
    "The records, one row a record: a .csv or .parquet file, one of fixed width (--positions), of "
    "SPSS, Stata or SAS, or a folder of such, in parts such as year=2026/ where these are columns."
)
_DATABASE = (
    "Instead of DATA: the name of a connection to a database, which an environment variable of "
    "that name holds, or [connections] in the file of secrets."
)
_STREAM = (
    "For PostgreSQL: let coded records pass through this process, which counts them faster; else "
    "they never leave the server. For servers read by ADBC: let records leave, as they have to."
)
_PERSON_ID = (
    "The column that says whose a record is, for a plan that protects a person with at most M "
    "records: that nobody has more is then seen to, not taken for granted."
)
_EXCESS = (
    "What to do about persons with more records: refuse (the default) or keep-first, which counts "
    "their first M."
)
_PERSON_ORDER = (
    "With keep-first: the column whose smallest values come first; else the order of the file. A "
    "database needs it."
)
_WHERE = (
    "The values of an attribute that count: one by its label (sex=Female), a range (age=18..24, "
    "age=65..), a group of values, or several of these separated by commas. Or whole questions, "
    'each in quotation marks: "age=65.. sex=F".'
)
_PER = (
    "Per cent of the records in each value of attribute A, or of all (--per total), instead of a "
    "count; for an own count, the own count that it is a share of. Repeat it for more."
)
_AMONG = "With --per: only the records with these values, in counts and in their base."
_NOISY = (
    "A noisy table from elsewhere: a CSV file with a column for each of its attributes and one "
    "called count, the variance of the noise of its cells and, if known, the ρ that it spent: "
    "census.csv:25 or census.csv:25:0.02. In place of the variance, the law and scale of the "
    "noise: census.csv:laplace=2, geometric=2 or rounding=5 (the base). Repeat it for more."
)
_GAP = (
    "With --nonnegative: how much of the squared distance to the noisy tables may be avoidable, "
    "as a share (else 0.001)."
)
_ESCAPE_FORMULAS = (
    "In CSV files, put an apostrophe before texts that a spreadsheet would take for formulas: "
    "those that begin with =, +, -, @, a tab or a line end. Codes of SDMX get an underscore."
)
_BOARD = (
    "Notes for the board to print in the report: a JSON file with comments by section, questions, "
    "decision and decided_by."
)
_EXPECTED = (
    "Public counts instead of a total: a CSV file with some attributes as columns, and count."
)
_CV_LIMIT = (
    "With expected counts: the largest coefficient of variation of a cell that is good enough to "
    "publish, such as 0.1 or 10% (else 20%)."
)
_WORKBOOK_CV_LIMIT = (
    "The largest coefficient of variation of a publishable cell, such as 0.2 or 20%."
)
_A_CODEBOOK = (
    "Table Schema or CSVW (.json), attribute,value,label (.csv, .xlsx, .ods), DDI (.xml), PX "
    "(.px), or a file of SPSS, Stata or SAS whose labels are taken."
)
_APPROVAL = "An approval of the plan (of `rpexplore approve`). Repeat it for more."
_ALLOWED_SIGNERS = (
    "With --approval: the list of who may approve, with which keys: the ALLOWED SIGNERS of "
    "ssh-keygen(1)."
)
_REQUIRE_APPROVALS = (
    "From now on the plan of every release must be approved by people of this list of allowed "
    "signers (ssh-keygen(1)), which the ledger keeps as it is now; none lifts it."
)
_A_RELEASE = "The folder of a release, or of combined tables."


_REQUIRE = (
    "A rule that tables are to meet, such as 'CV<=20% for 90% of people in each table'; or of "
    "cells, or in age,sex. Without a budget the smallest is found, by --public or "
    "--expected-count; with one you read which tables meet it. Repeat it for more."
)
Weighting = StrEnum("Weighting", ["equal", "cells", "sqrt"])
RelativeTo = StrEnum("RelativeTo", ["weight", "target"])
Certainty = StrEnum("Certainty", ["median", "surely"])
# In the order of `counts_objectives.OBJECTIVES`.
CountsObjectiveName = StrEnum(
    "CountsObjectiveName",
    {"LARGEST": "largest", "SUM": "sum", "TARGETS_THEN_SUM": "targets-then-sum"},
)
Neighbours = StrEnum("Neighbours", {"add_remove": "add-remove", "replace": "replace"})
MinimumBudgetFor = StrEnum("MinimumBudgetFor", ["targets", "required"])
ExcessRecords = StrEnum("ExcessRecords", {"REFUSE": "refuse", "KEEP_FIRST": "keep-first"})
# In the order of `presets.PRESETS`.
PresetName = StrEnum(
    "PresetName",
    {
        "REDISTRICTING": "redistricting",
        "CENSUS": "census",
        "AGE_PYRAMID": "age-pyramid",
        "CUMULATIVE_AGES": "cumulative-ages",
        "IDENTITY_PLUS_SUM": "identity-plus-sum",
    },
)


class LossHelp(click.Command):
    """A verb with the options of losses, whose help is made from their registry when it is shown.

    The registry has all solvers with it, which no other help needs.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rpexplore.planning.serialization import help_of_options

        texts = help_of_options()
        for parameter in self.params:
            if parameter.name in texts:
                parameter.help = texts[parameter.name]
        super().format_options(ctx, formatter)


# ---- every verb

AsJson = Annotated[bool, flag("--json", "Print one JSON object, for machines.")]
ParquetOnly = Annotated[
    bool, flag("--parquet-only", "Write no CSV files (tables in areas never have any).")
]
FilePerTable = Annotated[
    bool,
    flag(
        "--file-per-table",
        "Give each table files of its own; else more than 100 small tables are in one, "
        "tables.parquet, without CSV.",
    ),
]
EscapeFormulas = Annotated[bool, flag("--escape-formulas", _ESCAPE_FORMULAS)]
Force = Annotated[bool, flag("--force", "Overwrite the file if it exists.")]

# ---- planning

Codebook = Annotated[Path, argument("CODEBOOK", _A_CODEBOOK)]
Resource = Annotated[str | None, option("NAME", "Which table of a Data Package with several.")]
Columns = Annotated[
    str | None,
    option(
        "ROLE=COLUMN,…",
        "What the columns of a CSV codebook or a spreadsheet are, if they have other names: "
        "attribute=Variable,code=Code,label=Bedeutung (and group=…). Of one row an attribute: "
        "name=Variable,values=Codes (and type=…,label=…,missing=…).",
        "--map",
    ),
]
Groups = Annotated[
    list[str] | None,
    option(
        "A=FILE",
        "Take the groups of attribute A from a hierarchy of τ-ARGUS (.hrc), as often as needed.",
        "--groups",
    ),
]
PublicValues = Annotated[
    list[str] | None,
    option(
        "A=FILE",
        "Take the values of attribute A from the records in FILE. You confirm by this that they "
        "are public: nothing protects them, and the codebook says where they are from.",
        "--public-values",
    ),
]
NotStated = Annotated[
    list[str] | None,
    option(
        "A",
        "Give attribute A, or all (*), one more value for records that have none: not stated. "
        "release counts these by --missing-values '*=not stated'. Repeat it for more.",
        "--not-stated",
    ),
]
Recode = Annotated[
    list[str] | None,
    option(
        "A=FILE",
        "Count values of records as others, by a CSV file with the columns old and new: old to new "
        "municipalities, or 7..20 as 6+. The new ones must be in the codebook.",
        "--recode",
    ),
]
Converted = Annotated[Path | None, option("FILE", "Also write it there, as .json or .csv.")]
PlanOut = Annotated[Path, option("FILE", "Where the plan goes.")]
UpTo = Annotated[int | None, option("K", "The total and all tables up to K-way.")]
OfOrder = Annotated[list[int] | None, option("K", "All tables of exactly K attributes.")]
AtMostCells = Annotated[int | None, option("N", "All tables with at most N cells.")]
Table = Annotated[list[str] | None, option("A,B", _TABLE)]
TablesFile = Annotated[Path | None, option("FILE", _TABLES)]
Sum = Annotated[list[str] | None, Option("--sum", metavar="A,B", help=_SUM)]
Mean = Annotated[list[str] | None, Option("--mean", metavar="A,B", help=_MEAN)]
By = Annotated[list[str] | None, Option("--by", metavar="A,B", help=_BY)]
Weight = Annotated[
    list[str] | None, option("A,B=W", "Weight of a table (else 1); larger = more accurate.")
]
Target = Annotated[list[str] | None, option("A,B=T", _TARGET)]
Basis = Annotated[list[str] | None, option("A=BASIS", _BASIS)]
UniformReference = Annotated[bool, flag("--uniform-reference", _UNIFORM_REFERENCE)]
TheLoss = Annotated[str | None, option("LOSS", "")]
TheWeighting = Annotated[Weighting | None, Option()]
TheRelativeTo = Annotated[RelativeTo | None, Option()]
Rho = Annotated[str | None, option("R", f"Budget as ρ of zCDP. {_DIRECTION}")]
Epsilon = Annotated[str | None, option("E", f"Budget as ε, with --delta. {_DIRECTION}")]
Delta = Annotated[str | None, option("D", f"The δ that goes with ε. {_DIRECTION}")]
Mu = Annotated[str | None, option("M", f"Budget as μ = √(2ρ). {_DIRECTION}")]
PrivacyCost = Annotated[str | None, option("C", f"Budget as 2ρ. {_DIRECTION}")]
TheMinimumBudget = Annotated[MinimumBudgetFor | None, Option(help=_TABLES_MINIMUM_BUDGET)]
Require = Annotated[list[str] | None, option("RULE", _REQUIRE, "--require")]
TheCertainty = Annotated[
    Certainty | None,
    Option(
        "--certainty",
        help="With --require, --most-people or --then-most-people: for the median of the forecast "
        "(the default), or surely: for the lower end of its range.",
    ),
]
MostPeopleFlag = Annotated[
    bool,
    Option(
        "--most-people",
        help="Objective: most people in good cells within the budget, by a forecast (--public or "
        "--expected-count). Good: a CV of at most --cv-limit, or that of the one --require. Finds "
        "weights for the average error; people of a table with --weight 2 count twice.",
    ),
]
Share = Annotated[list[str] | None, option("PART=SHARE", _SHARE)]
TheNeighbours = Annotated[Neighbours | None, option("KIND", _NEIGHBOURS, "--neighbours")]
Period = Annotated[str | None, option("ATTRIBUTE", _PERIOD, "--period")]
Exact = Annotated[list[str] | None, option("A,B", _EXACT)]
MaxPeriods = Annotated[int | None, option("M", _MAX_PERIODS)]
RecordsPerPerson = Annotated[int | None, option("M", _PERSON)]
CountDistinct = Annotated[str | None, option("COLUMN", _DISTINCT)]
UnitNoun = Annotated[str | None, option("NOUN", _UNIT)]
ExpectedCount = Annotated[
    RecordCount | None,
    option("N", "How many records are expected in all: forecasts how good the tables will be."),
]
ExpectedFile = Annotated[Path | None, option("FILE", _EXPECTED, "--expected")]
CvLimit = Annotated[Ratio | None, option("X", _CV_LIMIT)]

Pilot = Annotated[
    str | None,
    option(
        "SHARE",
        "Measure the one-way tables first, by at most this share of the budget (5%), so that "
        "they tell how good all others will be. The tables stay as accurate as without.",
    ),
]
ThenMostPeople = Annotated[
    bool,
    flag(
        "--then-most-people",
        "With --pilot: plan the rest when the pilot is measured, from its figures, for most people "
        "in good cells at the same cost. Good: a CV of at most --cv-limit, or that of the one "
        "--require.",
    ),
]
Universe = Annotated[
    str | None,
    option(
        "CONDITION",
        "Which records are counted: 'rectype = \"P\" & age >= 16'. The columns need not be in the "
        "codebook. The condition is part of the plan.",
    ),
]

# ---- planning own counts

TemplateCodebook = Annotated[Path, option("FILE", _A_CODEBOOK, "--codebook")]
Counts = Annotated[Path | None, option("FILE", _QUERIES)]
Count = Annotated[list[str] | None, option("TEXT", _QUERY)]
CountTarget = Annotated[str | None, option("T", _QUERY_TARGET)]
TheCountsObjective = Annotated[
    CountsObjectiveName | None,
    Option(
        help="What own counts are planned for, each compared with its target: the largest ratio of "
        "a variance to its squared target, the sum of all ratios, or their sum once all targets "
        "are met.  [default: largest]"
    ),
]
FreeCounts = Annotated[
    Path | None,
    option(
        "FILE",
        "A second list of own counts, as for --counts, that takes only what the first leaves of "
        "the budget: no record costs more for it.",
    ),
]
FreeCount = Annotated[
    list[str] | None,
    option("NAME", "An own count that takes only what the others leave. (repeatable)"),
]
CountsOf = Annotated[str | None, option("A,B", _QUERY_ATTRIBUTES)]
QueryAttributes = Annotated[str | None, option("A,B", _QUERY_ATTRIBUTES, "--attributes")]
ChosenPreset = Annotated[
    PresetName | None,
    Option(
        help="A well-known list of own counts with targets (`rpexplore counts presets`), fitted "
        "to the codebook; counts of yours are put before it."
    ),
]
PresetRole = Annotated[list[str] | None, option("ROLE=A", _PRESET_ROLE)]
PresetCategory = Annotated[list[str] | None, option("ROLE:V=C", _PRESET_CATEGORY)]
TemplateOut = Annotated[Path, option("FILE", "Where the template goes: a .csv file.")]

# ---- plans and reports

Approvals = Annotated[list[Path] | None, option("FILE", _APPROVAL, "--approval")]
AllowedSigners = Annotated[Path | None, option("FILE", _ALLOWED_SIGNERS)]
PlanFile = Annotated[Path, argument("PLAN", "A plan file.")]
PlanOrRun = Annotated[
    Path,
    argument(
        "PLAN",
        "A plan file; or a release, or a run with its pilot released, forecast by its tables.",
    ),
]
PlanOrRelease = Annotated[Path, argument("PLAN", "A plan file, or the folder of a release.")]
PlanFiles = Annotated[list[Path], argument("PLAN", "Plan files.")]
SkipOthers = Annotated[
    bool,
    flag("--skip-others", "Leave files alone that are no plans, such as other JSON files."),
]
HowMany = Annotated[
    int | None,
    Option(
        min=0,
        metavar="N",
        help="How many tables or own counts, the least accurate first (else 20).",
    ),
]
CsvOut = Annotated[Path | None, option("FILE", "Write all of them to a CSV file.")]
ReportOut = Annotated[
    Path,
    option("FILE", "Where the report goes: .html, or .pdf (printed by Chromium, Chrome or Edge)."),
]
ReportName = Annotated[str, option("TEXT", "What to call the plan in the report.")]
ReportSurvey = Annotated[
    str, option("TEXT", "The name of the survey or register, as the title of the report.")
]
ReportNote = Annotated[str, option("TEXT", "A remark to print in the report.")]
Board = Annotated[Path | None, option("FILE", _BOARD)]
RecordNoun = Annotated[
    str, option("WORD", "What one record stands for, in the plural: people, say.")
]

# ---- releases

PlanToRun = Annotated[Path | None, argument("PLAN", "A plan file.")]
Data = Annotated[Path | None, argument("DATA", _DATA)]
FolderToFill = Annotated[Path | None, option("FOLDER", "A new folder for the tables. Required.")]
Database = Annotated[str | None, option("NAME", _DATABASE)]
DatabaseTable = Annotated[
    str | None, option("TABLE", "The table or view with the records: TABLE or SCHEMA.TABLE.")
]
Stream = Annotated[bool, flag("--stream", _STREAM)]
Encoding = Annotated[
    str | None,
    option("NAME", "Of texts in DATA, such as windows-1252; UTF-8, or as the file says."),
]
Positions = Annotated[
    Path | None,
    option(
        "FILE", "A DDI codebook (.xml) with the positions of columns, where DATA has fixed width."
    ),
]
EncodingOfCodebook = Annotated[
    str | None,
    option(
        "NAME",
        "Of texts in the files read, such as windows-1252; UTF-8, or as the file says.",
        "--encoding",
    ),
]
LanguageOfCodebook = Annotated[
    str,
    option(
        "CODE", "Of labels, such as de, of a DDI or PX file in several languages.", "--language"
    ),
]
UnknownValues = Annotated[
    list[str] | None,
    option("A=V", "Count what is not in the codebook of attribute A as its value V; A may be *."),
]
MissingValues = Annotated[
    list[str] | None,
    option(
        "A=V", "Count what is missing in attribute A as its value V; *=V: wherever there is a V."
    ),
]
PersonId = Annotated[str | None, option("COLUMN", _PERSON_ID)]
Excess = Annotated[ExcessRecords | None, Option(help=_EXCESS)]
PersonOrder = Annotated[str | None, option("COLUMN", _PERSON_ORDER)]
Ledger = Annotated[str | None, option("LEDGER", _LEDGER, "--ledger")]
LimitForUnit = Annotated[
    str | None,
    option("X", "Budget limit: ρ over all releases of this data, for the plan's privacy unit."),
]
LimitForRecord = Annotated[
    str | None,
    option("X", "Set the budget limit: ρ over all releases, for one record; none lifts it."),
]
ForgetLedger = Annotated[str | None, option("LEDGER", _FORGET_LEDGER, "--forget")]
MergeLedger = Annotated[str | None, option("LEDGER", _MERGE_LEDGER, "--merge")]
CreateLedger = Annotated[bool, flag("--create", _CREATE_LEDGER)]
GrantLedger = Annotated[
    list[str] | None,
    option("ROLE", "With --create: a role that may then book runs, and read all.", "--grant"),
]
GrantLimits = Annotated[
    list[str] | None,
    option(
        "ROLE",
        "With --create: a role that may then set limits and demand approvals, and read all.",
        "--grant-limits",
    ),
]
RequireApprovals = Annotated[str | None, option("FILE", _REQUIRE_APPROVALS)]
NeededApprovals = Annotated[
    int | None,
    Option(
        "--approvals",
        min=1,
        metavar="N",
        help="How many people of the list must approve (else 1).",
    ),
]
Empty = Annotated[bool, flag("--empty", "Release even if there are no records at all.")]
CountImpossible = Annotated[
    bool,
    flag(
        "--count-impossible", "Count records that the codebook's impossible combinations rule out."
    ),
]
DryRun = Annotated[bool, flag("--dry-run", "Check everything, the records too; spend nothing.")]
Resume = Annotated[
    bool,
    flag(
        "--resume",
        "Finish a stopped run into --out, without drawing again; with PLAN and DATA go on behind "
        "its pilot.",
    ),
]
PilotOnly = Annotated[
    bool,
    flag(
        "--pilot-only",
        "Draw and release the plan's pilot alone, into OUT-pilot; the whole run is booked.",
    ),
]
Yes = Annotated[bool, flag("--yes", "Do not ask before the run.")]

# ---- results

ReleaseFolder = Annotated[Path, argument("RELEASE", _A_RELEASE)]
AnyResults = Annotated[
    Path,
    argument("RELEASE", "The folder of a release of any kind, or of what was made of one."),
]
WorkbookCvLimit = Annotated[Ratio, option("X", _WORKBOOK_CV_LIMIT)]
LeaveEmpty = Annotated[bool, flag("--leave-empty", "Leave cells that are not publishable empty.")]
WorkbookOut = Annotated[Path, option("FILE", "Where the workbook goes: an .xlsx file.")]
Where = Annotated[list[str] | None, argument("A=VALUES", _WHERE)]
Per = Annotated[list[str] | None, option("A", _PER, "--per")]
Among = Annotated[list[str] | None, option("A=VALUES", _AMONG, "--among")]
Folder = Annotated[Path, option("FOLDER", "A new folder for the tables.")]
Releases = Annotated[list[Path], argument("RELEASE", "Folders of releases, or of combined tables.")]
Noisy = Annotated[list[str] | None, option("FILE:VARIANCE", _NOISY)]
CombineLedger = Annotated[
    str | None,
    option("LEDGER", "A ledger, to refuse releases that it knows to be of different records."),
]
Nonnegative = Annotated[bool, flag("--nonnegative", "No cell below 0; all tables still agree.")]
Simulate = Annotated[bool, flag("--simulate", "With a simulation of smooth tables.")]
Smooth = Annotated[bool, flag("--smooth", "Best guesses by a model, with its error beside each.")]
RoundTo = Annotated[
    int | None,
    option(
        "N",
        "Multiples of N (3, 5, 10) in place of whole numbers; for reading, it protects nobody.",
        "--round-to",
    ),
]
Round = Annotated[
    bool, flag("--round", "Whole numbers that add up; most counts move by less than 1.")
]
Gap = Annotated[Ratio | None, option("G", _GAP)]
