"""The tables of devices and models against the check values of DOMAIN.md §2 and §4."""

import csv
from dataclasses import asdict
from importlib import resources

import pytest

from model import catalogue
from model.catalogue import Device, Model
from model.errors import LabError

DEVICES = list(catalogue.devices().values())
MODELS = list(catalogue.models().values())


def f1_parameters(model: Model) -> int:
    """F1 with V·d twice unless tied; a mixture has `experts` feed-forward blocks a layer."""
    heads, kv_heads = model.attention_width, model.kv_heads * model.head_dim
    attention = 2 * model.hidden * heads + 2 * model.hidden * kv_heads
    ffn = model.ffn_matrices * model.hidden * model.feed_forward * max(1, model.experts)
    embeddings = model.vocabulary * model.hidden * (1 if model.tied_embeddings else 2)
    return model.layers * (attention + ffn) + embeddings


def test_all_solid_devices_of_the_dossier_are_there():
    assert {device.name for device in DEVICES} >= {
        "A100 80G SXM",
        "A100 80G PCIe",
        "A100 40G SXM",
        "A800 80G SXM",
        "H100 SXM",
        "H100 PCIe",
        "H800 SXM",
        "H20",
        "H200 SXM",
        "B200 SXM",
        "L40S",
        "L20",
        "RTX 4090",
        "RTX 3090",
        "Ascend 910B2",
        "Ascend 910B3",
        "Ascend 910B4",
        "Ascend 910C",
        "MI300X",
    }


@pytest.mark.parametrize(
    ("device", "ridge"),
    [
        ("a100-80g-sxm", 153.0),
        ("h100-sxm", 295.2),
        ("910b2", 235.0),
        ("910b3", 195.6),
        ("h20", 37.0),
        ("a100-80g-pcie", 161),
        ("a100-40g-sxm", 201),
        ("h100-pcie", 378),
        ("h200-sxm", 206),
        ("b200-sxm", 281),
        ("l40s", 419),
        ("l20", 138),
        ("rtx-4090", 164),
        ("rtx-3090", 76),
        ("910b4", 350),
        ("910c", 235),
        ("mi300x", 247),
    ],
)
def test_ridge_f4(device, ridge):
    assert catalogue.device(device).ridge_flop_per_byte == pytest.approx(
        ridge, abs=0.05 if isinstance(ridge, float) else 0.6
    )


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.id)
def test_device_row_is_plausible_and_has_a_source(device: Device):
    assert device.id == device.id.lower()
    assert 8e9 <= device.hbm_bytes <= 1e12  # a slip of a unit is a factor of 1000
    assert 0.2e12 <= device.hbm_bytes_per_s <= 50e12
    assert 10 < device.ridge_flop_per_byte < 1000
    assert 8e9 <= device.host_link_bytes_per_s <= 1e12
    share = device.host_link_effective_bytes_per_s / device.host_link_bytes_per_s
    assert share == pytest.approx(0.78, abs=0.1)
    assert device.gpu_link_bytes_per_s >= device.host_link_bytes_per_s
    assert device.host_memory_bytes >= 16e9
    assert device.confidence in ("SRC", "card", "paper", "2ND", "MEM")
    assert device.source


def test_units_are_converted_without_rounding_errors():
    a100 = catalogue.device("a100-80g-sxm")
    assert a100.hbm_bytes_per_s == 2_039_000_000_000
    assert catalogue.device("h100-pcie").bf16_flop_per_s == 756_500_000_000_000
    assert a100.gpu_link_bytes_per_s == 300e9


def test_export_variants_differ_from_their_originals_only_in_the_link():
    for variant, original in (("a800-80g-sxm", "a100-80g-sxm"), ("h800-sxm", "h100-sxm")):
        a, b = asdict(catalogue.device(variant)), asdict(catalogue.device(original))
        differing = {name for name in a if a[name] != b[name]}
        assert differing == {"id", "name", "gpu_link_bytes_per_s", "source", "confidence"}
        assert a["gpu_link_bytes_per_s"] == 200e9


def test_peers_without_a_gpu_link_talk_over_the_host_link():
    for name in ("rtx-4090", "rtx-3090", "910b4"):
        device = catalogue.device(name)
        assert device.gpu_link_bytes_per_s == device.host_link_bytes_per_s


@pytest.mark.parametrize(
    ("model", "billions", "kv_bytes"),
    [
        ("llama-2-7b", 6.74, 524_288),
        ("llama-2-13b", 13.02, 819_200),
        ("llama-2-70b", 68.98, 327_680),
        ("llama-3-8b", 8.03, 131_072),
        ("llama-3-70b", 70.55, 327_680),
        ("llama-3.1-8b", 8.03, 131_072),
        ("llama-3.1-70b", 70.55, 327_680),
        ("qwen2.5-7b", 7.62, 57_344),
        ("qwen2.5-14b", 14.77, 196_608),
        ("qwen2.5-32b", 32.76, 262_144),
        ("qwen2.5-72b", 72.71, 327_680),
        ("qwen3-8b", 8.19, 147_456),
        ("qwen3-14b", 14.77, 163_840),
        ("qwen3-32b", 32.76, 262_144),
        ("qwen3-30b-a3b", 30.53, 98_304),
        ("mixtral-8x7b", 46.70, 131_072),
        ("deepseek-v3", 671.0, 70_272),
        ("gpt-3-175b", 174.60, 4_718_592),
        ("opt-1.3b", 1.32, 196_608),
        ("opt-13b", 12.85, 819_200),
        ("opt-66b", 65.72, 2_359_296),
        ("bloom-176b", 176.25, 4_014_080),
        ("yi-34b", 34.39, 245_760),
    ],
)
def test_parameters_and_kv_bytes_f3(model, billions, kv_bytes):
    entry = catalogue.model(model)
    assert entry.parameters / 1e9 == pytest.approx(billions, abs=0.0051)
    assert entry.kv_bytes_per_token() == kv_bytes
    assert entry.kv_bytes_per_token("fp8") == kv_bytes / 2


@pytest.mark.parametrize("model", [m for m in MODELS if m.feed_forward], ids=lambda m: m.id)
def test_parameters_are_f1_plus_norms_biases_and_positions(model: Model):
    small = model.parameters - f1_parameters(model)
    assert 0 < small < 0.005 * model.parameters
    if model.name.startswith("Llama"):  # nothing but two norms a layer and the last one
        assert small == (2 * model.layers + 1) * model.hidden


@pytest.mark.parametrize(
    ("model", "billions"), [("qwen3-30b-a3b", 3.35), ("mixtral-8x7b", 12.88), ("deepseek-v3", 37)]
)
def test_active_parameters_of_mixtures(model, billions):
    assert catalogue.model(model).active_parameters / 1e9 == pytest.approx(billions, abs=0.005)


def test_dense_models_use_all_parameters():
    for model in MODELS:
        assert (model.active_parameters == model.parameters) == (model.experts == 0)


def test_attention_width_is_not_the_hidden_size_everywhere():
    for name, width in (("qwen3-32b", 8192), ("qwen3-30b-a3b", 4096), ("llama-3-8b", 4096)):
        model = catalogue.model(name)
        assert model.attention_width == width
        assert (model.hidden == width) == name.startswith("llama")


def test_a_latent_is_cached_where_kv_kind_is_mla():
    assert catalogue.model("deepseek-v3").mla_latent == 512 + 64
    for model in MODELS:
        assert model.kv_kind in ("gqa", "mla")
        assert (model.mla_latent > 0) == (model.kv_kind == "mla")


def test_llama_3_and_3_1_differ_in_context():
    limits = {model.id: model.max_context_tokens for model in MODELS}
    assert limits["llama-2-7b"] == limits["llama-2-13b"] == limits["llama-2-70b"] == 4_096
    assert limits["llama-3-8b"] == limits["llama-3-70b"] == 8_192
    assert limits["llama-3.1-8b"] == limits["llama-3.1-70b"] == 131_072


def test_draft_model_is_a_hundredth_of_gpt_3():
    draft, target = catalogue.model("opt-1.3b"), catalogue.model("gpt-3-175b")
    assert 100 < target.parameters / draft.parameters < 150


def test_unknown_ids_are_answered_with_the_known_ones():
    with pytest.raises(LabError, match=r"no hardware 'a100'.*a100-80g-sxm.*h100-sxm"):
        catalogue.device("a100")
    with pytest.raises(LabError, match=r"no model 'gpt-5'.*llama-3-8b"):
        catalogue.model("gpt-5")


@pytest.mark.parametrize("table", ["hardware.csv", "models.csv"])
def test_tables_are_rectangular_and_ids_unique(table):
    text = resources.files(catalogue).joinpath(table).read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len({row[0] for row in rows}) == len(rows)
