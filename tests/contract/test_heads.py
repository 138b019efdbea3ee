import pytest

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.heads import HeadUnfit, Place, place_of


def net(name: str):
    return architecture_spec.validate_python(name)


class TestTaskIncremental:
    def test_each_task_gets_a_head_behind_the_others(self):
        assert place_of("task_incremental", net("tasknet"), (), 0, 9) == Place((10,), 0, 10, 0)
        assert place_of("task_incremental", net("tasknet"), (10,), 0, 4) == Place((10, 5), 10, 5, 0)

    def test_labels_that_are_numbered_through_begin_at_the_lowest(self):
        assert place_of("task_incremental", net("tasknet"), (5,), 5, 9) == Place((5, 5), 5, 5, 5)

    def test_heads_that_were_named_are_kept_to(self):
        planned = net("tasknet_10_5")
        assert place_of("task_incremental", planned, (10,), 0, 2) == Place((10, 5), 10, 5, 0)
        with pytest.raises(HeadUnfit, match="are 6 classes, and head 2 of tasknet_10_5 tells 5 apart"):
            place_of("task_incremental", planned, (10,), 0, 5)
        assert place_of("task_incremental", planned, (10, 5), 0, 5).heads == (10, 5, 6)

    def test_a_head_has_at_least_two_classes(self):
        assert place_of("task_incremental", net("tasknet"), (), 0, 0).classes == 2

    @pytest.mark.parametrize(
        ("learnt", "labels", "words"),
        [
            ((), (-1, 3), "number them from 0"),
            ((), (0, 1000), "a head has at most 1,000"),
            ((2,) * 20, (0, 1), "20 heads already"),
        ],
    )
    def test_what_no_head_can_take(self, learnt, labels, words):
        with pytest.raises(HeadUnfit, match=words):
            place_of("task_incremental", net("tasknet"), learnt, *labels)


class TestNewInstance:
    def test_one_head_for_all_sessions(self):
        assert place_of("new_instance", net("resnet18"), (), 0, 9) == Place((10,), 0, 10, 0)
        assert place_of("new_instance", net("resnet18"), (10,), 3, 5) == Place((10,), 0, 10, 0)
        assert place_of("new_instance", net("resnet18_100"), (), 0, 9) == Place((100,), 0, 100, 0)

    def test_other_classes_are_refused(self):
        with pytest.raises(HeadUnfit, match="every session has the same classes"):
            place_of("new_instance", net("resnet18"), (10,), 0, 10)
