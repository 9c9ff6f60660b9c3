"""Language models: text becomes numbers, a model learns, weights are kept; all with no network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

COMPUTE = """
import json, tempfile
import torch
from accelerate import Accelerator
from datasets import Dataset
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import BertConfig, BertForSequenceClassification

tokenizer = Tokenizer(models.WordLevel(unk_token="?"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
texts = ["red green", "green blue", "blue red"]
tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["?"]))
rows = Dataset.from_dict({"text": texts, "label": [0, 1, 0]})
rows = rows.map(lambda row: {"ids": tokenizer.encode(row["text"]).ids})
torch.manual_seed(0)
config = BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=16, num_hidden_layers=1,
                    num_attention_heads=2, intermediate_size=16, num_labels=2)
accelerator = Accelerator(cpu=True)
model = BertForSequenceClassification(config)
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
losses = []
for _ in range(10):
    loss = model(input_ids=torch.tensor(rows["ids"][:]), labels=torch.tensor(rows["label"][:])).loss
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    losses.append(loss.item())
weights = {name: value.clone() for name, value in model.state_dict().items()}
with tempfile.TemporaryDirectory() as folder:
    save_file(weights, f"{folder}/model.safetensors")
    again = load_file(f"{folder}/model.safetensors")
print(json.dumps({
    "words": tokenizer.get_vocab_size(),
    "ids": [len(ids) for ids in rows["ids"][:]],
    "learns": losses[-1] < losses[0],
    "same": all(torch.equal(again[name], weights[name]) for name in weights),
}))
"""


@pytest.fixture(scope="module")
def computed(layer: Layer) -> dict[str, Any]:
    """Import all of the layer's packages once, and train a tiny model with them."""
    done = layer.host.run("HF_HUB_OFFLINE=1 HF_HOME=/tmp/huggingface python -c %s", COMPUTE)
    assert done.rc == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_text_becomes_numbers(computed: dict[str, Any]) -> None:
    """A tokenizer learns three words beside the unknown one, and a data set is mapped with it."""
    assert computed["words"] == 4
    assert computed["ids"] == [2, 2, 2]


def test_a_model_learns(computed: dict[str, Any]) -> None:
    """A BERT of transformers, driven by accelerate, has less loss after ten steps."""
    assert computed["learns"] is True


def test_weights_are_kept(computed: dict[str, Any]) -> None:
    """Safetensors gives back the bits that it was given."""
    assert computed["same"] is True
