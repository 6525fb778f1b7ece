"""What a PostgreSQL server that holds a ledger checks of its entries: functions of the owner's.

Entries are added by two of them, `book` and `set_limits`, each granted by itself. The server checks
there what an entry holds, that it names the role that has logged in, and, of a run, limits and
demands. `ledger_tables` makes them.
"""

from rpexplore.common.files import FILE_PREFIX
from rpexplore.common.json_fields import dumps
from rpexplore.data.source import AT_MACHINE, HOLDS, LIES_IN, TABLE_IN_TABLE
from rpexplore.releases.approvals import MOST
from rpexplore.releases.ledger.events import IN_APPROVAL, KINDS
from rpexplore.releases.ledger.spent import FINEST, MOST_AMOUNT

SCHEMA = "rpexplore_ledger"
BOOKED = ("run", "finished", "approved", "pilot")
"""The kinds of entries that `book` adds; `set_limits` adds all others."""
_LONGEST = 8_000_000  # bytes of an entry: a list of allowed signers has up to a million characters

# What each kind of entry holds, as the checks below read it: {"run": {"names": "list", …}, …}.
_HELD = dumps(
    {
        kind: {
            key: "str or null" if of_key == str | None else of_key.__name__
            for key, of_key in keys.items()
        }
        for kind, keys in KINDS.items()
    }
)
# Functions that run with the rights of the owner. Every name is written with its schema, and no
# schema of anybody else is looked into; texts in them mean the same in every session. What is
# wrong with an entry is told by a code of five signs.
_SET = "SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on"
# The first of the two is told fast.
_IS_TABLE_IN_TABLE = f"starts_with(name, 'postgresql:') AND name ~ '{TABLE_IN_TABLE}'"
FUNCTIONS = f"""
CREATE FUNCTION {SCHEMA}.names_of(content text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT json_array_elements_text(content::json -> 'names'))
$$;

-- Of names of files the machine and the path, MACHINE:/data/people.csv, or what the file is;
-- of tables that are part of another one their number; other names as they are.
CREATE FUNCTION {SCHEMA}.places_of(names text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(
        SELECT CASE WHEN name ~ '^{FILE_PREFIX}' OR {_IS_TABLE_IN_TABLE}
            THEN split_part(name, '{LIES_IN}', 1)
            ELSE regexp_replace(name, '^(/.*){AT_MACHINE}([^ /]*)$', '\\2:\\1') END
        FROM unnest(names) AS name)
$$;

-- The folders around them likewise, but for the outermost, and the tables that they are part of.
CREATE FUNCTION {SCHEMA}.around(names text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(
        SELECT split_part(name, '{LIES_IN}', 2)
        FROM unnest(names) AS name
        WHERE name ~ '^{FILE_PREFIX}.*{LIES_IN}' OR {_IS_TABLE_IN_TABLE}
        UNION
        SELECT array_to_string(parts[1:n], '/')
        FROM unnest({SCHEMA}.places_of(
                ARRAY(SELECT name FROM unnest(names) AS name WHERE name ~ '^/.*{AT_MACHINE}[^ /]*$')
            )) AS place, string_to_array(place, '/') AS parts,
            generate_series(2, cardinality(parts) - 1) AS n)
$$;

-- These names, and those of all that shares a name with them, lies in them or around them.
CREATE FUNCTION {SCHEMA}.connected(given text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    known text[] := ARRAY[]::text[];
    more text[] := given;
    paths text[];
    folders text[];
BEGIN
    WHILE more IS NOT NULL LOOP
        known := known || more;
        paths := {SCHEMA}.places_of(known);
        folders := {SCHEMA}.around(known);
        SELECT array_agg(DISTINCT name) INTO more
        FROM (
            SELECT names, {SCHEMA}.places_of(names) AS places FROM (
                SELECT DISTINCT {SCHEMA}.names_of(content) AS names FROM {SCHEMA}.events
                WHERE kind NOT IN ('finished', 'approved') OFFSET 0  -- each text is read once
            ) AS named OFFSET 0
        ) AS events, unnest(names) AS name
        WHERE (places && paths OR places && folders OR {SCHEMA}.around(names) && paths)
            AND name <> ALL (known);
    END LOOP;
    RETURN known;
END $$;

-- The names of the records themselves, without those of files in a folder, or below a view.
CREATE FUNCTION {SCHEMA}.own_names_of(content text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN ends IS NULL THEN names ELSE names[1:ends - 1] END
    FROM {SCHEMA}.names_of(content) AS names, array_position(names, names[1] || '{HOLDS}') AS ends
$$;

-- The limits, or the demands, that bind an account: of the same records the last one, and of
-- records that came together later each one's.
CREATE FUNCTION {SCHEMA}.in_force(wanted text, known text[]) RETURNS SETOF json
LANGUAGE plpgsql AS $$
DECLARE
    event record;
    covered text[] := ARRAY[]::text[];
BEGIN
    FOR event IN
        SELECT kind, content, {SCHEMA}.own_names_of(content) AS names FROM {SCHEMA}.events
        WHERE kind IN (wanted, 'bound') AND {SCHEMA}.names_of(content) && known ORDER BY id DESC
    LOOP
        IF NOT event.names && covered THEN
            RETURN NEXT event.content::json;
        END IF;
        IF event.kind = wanted THEN  -- what was bound by another ledger replaces nothing
            covered := covered || event.names;
        END IF;
    END LOOP;
END $$;

-- Numerator and denominator of an amount, "0.125" or "1/3"; nothing for another text.
CREATE FUNCTION {SCHEMA}.ratio(amount text) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts text[];
BEGIN
    IF amount ~ '^[0-9]+/[0-9]+$' AND length(amount) <= 8000 THEN
        parts := string_to_array(amount, '/');
    ELSIF amount ~ '^[0-9]+([.][0-9]+)?$' AND length(split_part(amount, '.', 1)) <= 400
        AND length(amount) <= 4000
        AND amount::numeric >= ('0.' || repeat('0', 399) || '1')::numeric THEN
        parts := ARRAY[replace(amount, '.', ''),
            '1' || repeat('0', length(split_part(amount, '.', 2)))];
    END IF;
    IF parts[1]::numeric > 0 AND parts[2]::numeric > 0
        AND length(parts[1]) <= 4000 AND length(parts[2]) <= 4000 THEN
        RETURN parts::numeric[];
    END IF;
    RETURN NULL;
END $$;

-- The sum of what runs of an account have cost: numerator and denominator. Exactly; rounded up to
-- 400 decimals where it is of longer numbers, as no plan costs.
CREATE FUNCTION {SCHEMA}.spent(known text[]) RETURNS numeric[] LANGUAGE plpgsql AS $$
DECLARE
    total numeric[] := ARRAY[0, 1];
    one numeric[];
    finest CONSTANT numeric := {FINEST};
    common numeric;
    other numeric;
    rest numeric;
BEGIN
    FOR one IN
        SELECT ARRAY[sum(cost[1]), cost[2]] FROM (
            SELECT {SCHEMA}.ratio(content::json ->> 'record_rho') AS cost FROM {SCHEMA}.events
            WHERE kind IN ('run', 'forgotten') AND {SCHEMA}.names_of(content) && known
        ) AS costs WHERE cost IS NOT NULL GROUP BY cost[2]
    LOOP
        IF length(total[2]::text) + length(one[2]::text) > length(finest::text) THEN
            total := ARRAY[
                div(total[1] * finest + total[2] - 1, total[2])
                    + div(one[1] * finest + one[2] - 1, one[2]),
                finest
            ];
            CONTINUE;
        END IF;
        -- Euclid's algorithm: over the least common denominator, numbers stay short.
        common := total[2];
        other := one[2];
        WHILE other > 0 LOOP
            rest := mod(common, other);
            common := other;
            other := rest;
        END LOOP;
        total := ARRAY[
            total[1] * div(one[2], common) + one[1] * div(total[2], common),
            total[2] * div(one[2], common)
        ];
    END LOOP;
    RETURN total;
END $$;

-- Whether an entry holds exactly what its kind does, so that every reader can read it.
CREATE FUNCTION {SCHEMA}.is_sound(of_kind text, content text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb := '{_HELD}'::jsonb -> of_kind;
    as_written json := content::json;
    given jsonb := content::jsonb;
BEGIN
    -- Keys as often as they are written: one that is written twice could hide its first value.
    RETURN octet_length(content) <= {_LONGEST}
        AND ARRAY(SELECT json_object_keys(as_written) AS key ORDER BY key) IN (
            ARRAY(SELECT jsonb_object_keys(wanted) AS key ORDER BY key),
            ARRAY(SELECT jsonb_object_keys(wanted) AS key
                UNION ALL SELECT 'noise' WHERE of_kind = 'run' ORDER BY key),
            ARRAY(SELECT jsonb_object_keys(wanted) AS key
                UNION ALL SELECT 'unit' WHERE of_kind = 'forgotten' ORDER BY key))
        AND (given -> 'unit' IS NULL OR jsonb_typeof(given -> 'unit') = 'string')
        -- (μ², Λ, U): no less than ρ has it, above 0, and above 1.
        AND (given -> 'noise' IS NULL OR (
            SELECT count(*) = 3 AND bool_and(jsonb_typeof(text) = 'string')
                AND bool_and(coalesce(amount[2] <= {FINEST}
                    AND amount[1] <= amount[2] * {MOST_AMOUNT}
                    AND (place > 1 OR amount[1] * own[2] >= 2 * own[1] * amount[2])
                    AND (place < 3 OR amount[1] > amount[2]), false))
            FROM jsonb_array_elements(CASE jsonb_typeof(given -> 'noise')
                    WHEN 'array' THEN given -> 'noise' ELSE '[]' END)
                    WITH ORDINALITY AS one (text, place),
                {SCHEMA}.ratio(text #>> '{{}}') AS amount,
                {SCHEMA}.ratio(given ->> 'record_rho') AS own))
        AND (SELECT bool_and(CASE value
                WHEN 'list' THEN jsonb_typeof(given -> key) = 'array'
                WHEN 'str' THEN jsonb_typeof(given -> key) = 'string'
                WHEN 'int' THEN jsonb_typeof(given -> key) = 'number'
                    AND as_written ->> key ~ '^[0-9]{{1,18}}$'
                ELSE jsonb_typeof(given -> key) IN ('string', 'null') END)
            FROM jsonb_each_text(wanted))
        AND (given -> 'names' IS NULL OR (
            SELECT count(*) > 0 AND bool_and(jsonb_typeof(name) = 'string')
            FROM jsonb_array_elements(given -> 'names') AS name))
        AND (given ->> 'record_rho' IS NULL OR (
            SELECT amount[1] <= amount[2] * {MOST_AMOUNT} AND amount[2] <= {FINEST}
            FROM {SCHEMA}.ratio(given ->> 'record_rho') AS amount))
        AND (of_kind NOT IN ('approvals', 'bound') OR (given ->> 'n')::bigint <= {MOST})
        AND (of_kind <> 'approved' OR NOT EXISTS (
            SELECT FROM json_array_elements(as_written -> 'approvals') AS approval
            WHERE ARRAY(SELECT json_object_keys(approval) AS key ORDER BY key)
                <> ARRAY(SELECT unnest('{{{",".join(IN_APPROVAL)}}}'::text[]) AS key ORDER BY key)
                OR EXISTS (SELECT FROM json_each(approval) WHERE json_typeof(value) <> 'string')));
END $$;

-- allowed: the kinds that the role may add; nothing where the owner takes over another ledger,
-- whose entries are in other names, and were checked there.
CREATE FUNCTION {SCHEMA}.append(kinds text[], contents text[], allowed text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    n_before bigint;
    number bigint;
    chain text;
    new_kind text;
    new_content text;
    about bigint;
    event record;
    known text[];
    total numeric[];
    bound numeric[];
    demanded bigint;
BEGIN
    LOCK TABLE {SCHEMA}.last IN EXCLUSIVE MODE;
    SELECT n_events, digest INTO STRICT number, chain FROM {SCHEMA}.last;
    n_before := number;
    IF allowed IS NOT NULL AND EXISTS (SELECT FROM {SCHEMA}.events WHERE kind = 'closed') THEN
        RAISE EXCEPTION 'closed' USING ERRCODE = 'RXEND';
    END IF;
    FOR new_kind, new_content IN SELECT * FROM unnest(kinds, contents) LOOP
        about := (new_content::json ->> 'run')::bigint;
        IF {SCHEMA}.is_sound(new_kind, new_content) IS NOT TRUE
            OR allowed IS NOT NULL AND (new_kind = ANY (allowed)) IS NOT TRUE
            OR allowed IS NOT NULL AND new_content::json ->> 'user' <> session_user::text
            OR about IS NOT NULL AND NOT EXISTS (
                SELECT FROM {SCHEMA}.events WHERE id = about AND kind = 'run')
            -- Who approved a run is noted with it, and what it has written once.
            OR new_kind = 'approved' AND about <= n_before
            OR new_kind = 'finished' AND EXISTS (
                SELECT FROM {SCHEMA}.events WHERE kind = 'finished'
                AND (content::json ->> 'run')::bigint = about
                AND content::json ->> 'manifest_sha256'
                    NOT IN ('', new_content::json ->> 'manifest_sha256'))
            -- Nor another pilot: a release that is noted has none, or that which is noted.
            OR new_kind = 'pilot' AND EXISTS (
                SELECT FROM {SCHEMA}.events WHERE kind IN ('pilot', 'finished')
                AND (content::json ->> 'run')::bigint = about)
            -- Nobody finishes the run of another role. (In version 1, users were no roles.)
            OR allowed IS NOT NULL AND new_kind IN ('finished', 'pilot') AND EXISTS (
                SELECT FROM {SCHEMA}.events JOIN pg_roles ON rolname = content::json ->> 'user'
                WHERE id = about AND rolname <> session_user)
        THEN
            RAISE EXCEPTION 'no sound entry' USING ERRCODE = 'RXBAD';
        END IF;
        number := number + 1;
        chain := encode(sha256(convert_to(
            chain || chr(10) || new_kind || chr(10) || new_content, 'UTF8')), 'hex');
        INSERT INTO {SCHEMA}.events VALUES (number, new_kind, new_content, chain);
        UPDATE {SCHEMA}.last SET n_events = number, digest = chain;
    END LOOP;
    FOR event IN
        SELECT id, content FROM {SCHEMA}.events
        WHERE id > n_before AND kind = 'run' AND allowed IS NOT NULL
    LOOP
        known := {SCHEMA}.connected({SCHEMA}.names_of(event.content));
        total := {SCHEMA}.spent(known);
        FOR bound IN
            SELECT {SCHEMA}.ratio(term ->> 'record_rho')
            FROM {SCHEMA}.in_force('limit', known) AS term
        LOOP
            IF total[1] * bound[2] > bound[1] * total[2] THEN
                RAISE EXCEPTION 'beyond the limit' USING ERRCODE = 'RXLIM';
            END IF;
        END LOOP;
        SELECT max((term ->> 'n')::bigint) INTO demanded
        FROM {SCHEMA}.in_force('approvals', known) AS term;
        IF demanded > 0 AND NOT EXISTS (
            SELECT FROM {SCHEMA}.events WHERE id > event.id AND kind = 'approved'
            AND (content::json ->> 'run')::bigint = event.id AND (
                -- Names are ASCII, and nobody is two by a capital letter.
                SELECT least(count(DISTINCT lower((one ->> 'name') COLLATE "C")),
                    count(DISTINCT one ->> 'key'))
                FROM json_array_elements(content::json -> 'approvals') AS one) >= demanded)
        THEN
            RAISE EXCEPTION 'not approved' USING ERRCODE = 'RXAPP';
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION {SCHEMA}.book(kinds text[], contents text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {_SET} AS $$
BEGIN
    PERFORM {SCHEMA}.append(kinds, contents, '{{{",".join(BOOKED)}}}');
END $$;

CREATE FUNCTION {SCHEMA}.set_limits(kinds text[], contents text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {_SET} AS $$
BEGIN
    PERFORM {SCHEMA}.append(kinds, contents,
        '{{{",".join(kind for kind in KINDS if kind not in BOOKED)}}}');
END $$;

CREATE FUNCTION {SCHEMA}.hold_off_others() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {_SET} AS $$
BEGIN
    LOCK TABLE {SCHEMA}.last IN EXCLUSIVE MODE;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM PUBLIC;
"""
