"""From a configuration to the jobs of the workflow: typed configuration, the table of stages, predicted costs, the plan."""
