"""The central manager of a workload: places queries on nodes, feeds them, delivers matches."""
