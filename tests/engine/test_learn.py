def test_cards_keep_what_plain_training_forgets(learner, new_report):
    first = learner.learn("low", strategy={"kind": "naive"})
    kept = first.learn("high", strategy={"kind": "flashcards", "count": 300})
    lost = first.learn("high", strategy={"kind": "naive"})
    assert kept.result.forgetting < 0.5 * lost.result.forgetting
    assert [measure.task for measure in kept.result.measures] == ["low", "high"]
    assert kept.result.recipes[0].source == "capsule"
    assert {"model.safetensors", "capsule-1.safetensors", "capsule-2.safetensors"} <= kept.names
