"""The planner: what is asked, the plan and its steps, its check by simulation, pools, the load."""
