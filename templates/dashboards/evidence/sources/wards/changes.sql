-- Differences of the last window and earlier ones, and of wards: "real" is higher, lower, unclear or unknown.
-- Written by: slackwater report wards.yaml -o wards.html --json > releases/wards.json
with queries as (select unnest(queries) as query from read_json('releases/wards.json')),
     series as (select query.label as label, unnest(query.series) as series from queries),
     found as (select label, series.kind as kind, unnest(series.differences) as difference from series)
select label, kind, difference.name as number, difference.minus_name as minus, difference.value as difference,
       difference.low as ci_low, difference.high as ci_high, difference.real as real
from found
