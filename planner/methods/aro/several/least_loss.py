"""Of all routings that carry given rates of gradients, one on which results need least room.

The constraints (4) to (10) hold with the rates fixed, for gradients alone. With results each link has t times its
capacity, and the least t is what the rates lose to results in a closed loop: a linear program in whole numbers.
"""

from __future__ import annotations

from dataclasses import replace

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.several.rates import Rates
from inakit.planner.methods.aro.several.reduced import Network, network
from inakit.planner.methods.aro.several.routing import Columns, Question, extract, share_capacity, task_columns
from inakit.planner.methods.aro.several.several_tasks import plan_of
from inakit.planner.methods.aro.task import tasks_of
from inakit.planner.solvers.columns import LinearProgram


def with_least_loss(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The plan of the same rates that loses least to results; the plan itself if none is found in time."""
    tasks = tasks_of(problem)
    known = {(shard.job, tree.root): shard.rate_bps for shard in plan.shards for tree in shard.trees}
    rates = tuple(known.get(task.key, 0.0) for task in tasks)
    net = network(problem.fabric, tasks, results=True).fine
    question = least_room(net, rates)
    solution = question.program.solve(options.time_limit_s, options.seed, options.gap)
    if not solution.found:
        return plan
    routing = extract(net, question.columns, solution.values, rates)
    return plan_of(problem, net, routing, rates, plan.outcome, options.window)


def least_room(net: Network, rates: Rates) -> Question:
    """The program: gradients keep to the capacities, gradients and results to t times these; t is to be least."""
    program = LinearProgram()
    columns = [task_columns(program, net, i, rate) for i, rate in enumerate(rates)]
    gradients = [Columns(column.y, column.x) for column in columns]
    share_capacity(program, replace(net, results=False), gradients, rates)
    t = program.variable(1, len(rates) + 1)
    for link, tasks in net.tasks_on.items():
        loads = [(rates[i] / net.fabric.capacities_bps[link], columns[i].flows[link]) for i in tasks]
        program.at_most([*loads, (-net.width(link), t)], 0)
    question = Question(net, columns, program)
    question.make_whole()
    program.maximise([(-1, t)])
    return question
