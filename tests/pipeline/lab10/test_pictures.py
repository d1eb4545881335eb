"""Test lab 10's waiting stages, its schedules from lists, and its figures."""

import pytest
import torch
from torch.nn.functional import mse_loss

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.prediction import Prediction
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.lab10 import exercises, pictures, waiting
from labs_helpers.pipeline.lab10.own_schedule import schedule_of
from labs_helpers.pipeline.schedules import one_f_one_b
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.practice.groups import practice_groups

LONGEST = 60  # characters of a title


def test_an_exercises_lists_become_the_librarys_schedule():
    assert schedule_of("1F1B", exercises.one_f_one_b_order, 3, 5) == one_f_one_b(3, 5)


def test_waiting_stages_train_in_a_schedule(monkeypatch):
    slept = []
    monkeypatch.setattr(waiting.time, "sleep", slept.append)

    def on_rank(comm):
        group, x = PracticeCommunication(comm), torch.full((2, 3), 2.0)
        stage = waiting.WaitingStage(1.0, 2.0)
        Pipeline(one_f_one_b(2, 3), {group.rank: stage}, mse_loss, group, (2, 3)).run([x] * 3, [0 * x] * 3)
        return stage.weight.grad.item()

    # The loss is (w₀ w₁ x)² with x = 2 and weights of 1; its derivative by each weight is 2 · x².
    assert practice_groups(on_rank, 2).results == [pytest.approx(8.0)] * 2
    assert slept.count(1.0) == slept.count(2.0) == 2 * 3


def test_figures_say_what_they_show():
    costs = [0.0, 2.0, 2.0, 2.0, 2.0, 4.0]
    stages = pictures.draw_stages(costs, {"equal blocks": [(0, 3), (3, 6)], "by cost": [(0, 4), (4, 6)]})
    assert stages.get_suptitle() == "The slowest stage costs 3 blocks instead of 4"
    simulated = simulate(one_f_one_b(2, 3), Times(forward=0.01, backward=0.02))
    slower = simulate(one_f_one_b(2, 3), Times(forward=0.011, backward=0.022))
    measured = pictures.draw_measured(simulated, slower)
    assert measured.get_suptitle() == "The measured step is 10% longer than simulated"
    assert "9% shorter" in pictures.draw_measured(slower, simulated).get_suptitle()
    bubbles = pictures.draw_bubbles({"1F1B": {4: 0.4, 8: 0.3}}, {4: 0.7, 8: 0.4}, 4, Prediction("bubble", 55.0))
    marked = [line for ax in bubbles.axes for line in ax.lines if line.get_label() == "_prediction"]
    assert [tuple(line.get_xydata()[0]) for line in marked] == [(4, 0.55)]
    losses = pictures.draw_losses({0.1: {"flush": [1.0, 0.5] * 10}}, window=2)
    assert [tuple(point) for point in losses.axes[0].lines[0].get_xydata()][:2] == [(1.0, 0.75), (3.0, 0.75)]
    for figure in (stages, measured, bubbles, losses):
        assert len(figure.get_suptitle() or figure.axes[0].get_title()) <= LONGEST
