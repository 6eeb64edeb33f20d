-- Occupied beds of each ward at the end of each window, with the ends of the 95 % interval.
select window_start, window_end, ward, value, ci_low, ci_high
from read_parquet('releases/wards/public/latest/beds.parquet')
where kind = 'level'
order by window_end, ward
