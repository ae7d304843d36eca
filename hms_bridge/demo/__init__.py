"""The main job, end to end, on tables that a real Hive wrote: `hms-bridge demo`."""
