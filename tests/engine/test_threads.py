"""A training takes as many threads as its steps are worth, and no job asks the machine how busy it is."""

from dataclasses import replace

import pytest

from engine.threads import worth
from flashcards.contract.image import ImageShape


@pytest.fixture
def asked(train_work):
    def make(architecture: str, image: tuple[int, int, int], batch: int, threads: int = 8):
        work = train_work(architecture=architecture, batch_size=batch, threads=threads)
        return replace(work, dataset=replace(work.dataset, input=ImageShape(*image)))

    return make


def test_small_steps_stay_on_one_thread(asked):
    assert worth(asked("blk_2_fil_16", (16, 16, 1), 16)) == 1


def test_large_steps_take_all_there_are(asked):
    assert worth(asked("blk_4_fil_64", (32, 32, 3), 64)) == 8
    assert worth(asked("blk_4_fil_64", (32, 32, 3), 64, threads=2)) == 2


def test_between_them_the_threads_grow_with_the_step(asked):
    found = [worth(asked("blk_4_fil_32", (32, 32, 3), batch)) for batch in (4, 8, 16, 32)]
    assert found == sorted(found)
    assert 1 < found[1] < 8


def test_where_the_size_of_a_step_is_not_known_it_takes_all(asked, train_work):
    assert worth(asked("dense_ae_128_32", (16, 16, 1), 16)) == 8
    assert worth(train_work(threads=8)) == 8


def test_captures_take_what_they_are_given(capture_work):
    assert worth(replace(capture_work(), threads=8)) == 8
