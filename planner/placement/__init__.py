"""Where the workers of jobs that come and go are placed, and which jobs have INA when: the step before any planner."""
