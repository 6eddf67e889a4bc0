"""The oracle: build a `transformers` model on torch's meta device and measure its parameters.

No weights are allocated, so the largest published models take a second or two. Every number is
read off real `nn.Parameter` objects; nothing here knows a formula, and nothing here may import
paramcalc.
"""

import importlib
import json
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import torch
import transformers
from torch import nn
from transformers.models.auto import configuration_auto, modeling_auto

from tests.goldens.classify import REPORTED_AS, TOWER_CATEGORIES, Link, category

logging.getLogger("transformers").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", message="Initializing zero-element tensors")

VERSIONS = {
    "transformers": transformers.__version__,
    "torch": torch.__version__.partition("+")[0],
}

MAIN_TASKS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING",
    "MODEL_MAPPING",
)
MAIN_CLASSES = {
    "bart": "BartForConditionalGeneration",
    "bert": "BertForMaskedLM",
    "bigbird_pegasus": "BigBirdPegasusForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration",
    "blenderbot-small": "BlenderbotSmallForConditionalGeneration",
    "deepseek_ocr2_text": "DeepseekOcr2TextModel",
    "diffusion_gemma": "DiffusionGemmaForBlockDiffusion",
    "diffusion_gemma_text": "DiffusionGemmaEncoderTextModel",
    "emu3_text_model": "Emu3ForCausalLM",
    "ernie4_5_vl_moe_text": "Ernie4_5_VLMoeTextModel",
    "gemma3": "Gemma3ForConditionalGeneration",
    "granite4_vision_text": "Granite4VisionTextModel",
    "marian": "MarianMTModel",
    "mbart": "MBartForConditionalGeneration",
    "mllama_text_model": "MllamaForCausalLM",
    "musicgen": "MusicgenForConditionalGeneration",
    "musicgen_decoder": "MusicgenForCausalLM",
    "musicgen_melody_decoder": "MusicgenMelodyForCausalLM",
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",
    "mvp": "MvpForConditionalGeneration",
    "paddleocr_vl_text": "PaddleOCRTextModel",
    "pegasus": "PegasusForConditionalGeneration",
    "pi0": "PI0ForConditionalGeneration",
    "pix2struct_text_model": "Pix2StructTextModel",
    "plbart": "PLBartForConditionalGeneration",
    "pp_formulanet_text": "PPFormulaNetTextModel",
    "prophetnet": "ProphetNetForConditionalGeneration",
    "qwen2_5_omni_text": "Qwen2_5OmniThinkerTextModel",
    "qwen3_omni_moe_text": "Qwen3OmniMoeThinkerTextModel",
    "roberta": "RobertaForMaskedLM",
    "step3p5": "Step3p7TextModel",
    "unlimited_ocr_text": "UnlimitedOcrTextModel",
    "whisper": "WhisperForConditionalGeneration",
}
"""The main class where the order of MAIN_TASKS would pick another one."""

ENCODER_ONLY = tuple(
    name
    for name in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if name not in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
)

Fields = Mapping[str, Any]


def config_from(fields: Fields) -> Any:
    """The `transformers` config object for the contents of a config.json."""
    config_class = configuration_auto.CONFIG_MAPPING[fields["model_type"]]
    decoded = config_class._decode_special_floats(json.loads(json.dumps(fields)))
    return config_class.from_dict(decoded)


def full_fields(fields: Fields) -> dict[str, Any]:
    """Every key the config class can write: defaults, derived keys and nulls included."""
    full: dict[str, Any] = json.loads(config_from(fields).to_json_string(use_diff=False))
    return full


def task_class(model_type: str, *tasks: str) -> str | None:
    """The name of the class of the first auto mapping that knows this type."""
    for task in tasks:
        found = getattr(modeling_auto, f"{task}_NAMES").get(model_type)
        if found:
            return found if isinstance(found, str) else found[0]
    return None


def main_class(model_type: str) -> str:
    """The class that counts when a config names none."""
    name = MAIN_CLASSES.get(model_type) or task_class(model_type, *MAIN_TASKS)
    if name is None:
        raise KeyError(f"no model class for {model_type}")
    return name


def class_name(fields: Fields) -> str:
    """The class named in `architectures`, or the main class if `transformers` does not have it."""
    for name in fields.get("architectures") or ():
        if hasattr(transformers, name):
            return str(name)
    return main_class(fields["model_type"])


def model_class(model_type: str, name: str) -> Any:
    """The class of that name; some that the auto classes know are not exported."""
    package = configuration_auto.model_type_to_module_name(model_type)
    module = f"transformers.models.{package}.modeling_{package}"
    return getattr(transformers, name, None) or getattr(importlib.import_module(module), name)


def build(fields: Fields) -> Any:
    """The model on the meta device, its tied weights tied. The dtype does not change a count."""
    cls = model_class(fields["model_type"], class_name(fields))
    config = config_from(fields)
    if cls.config_class is config.sub_configs.get("text_config"):
        config = config.get_text_config()  # as AutoModelForCausalLM.from_config does
    with torch.device("meta"):
        model = cls._from_config(config, dtype=torch.float32)
    model.tie_weights()
    return model


def links(model: nn.Module, name: str) -> Iterator[Link]:
    """Every step of a dotted parameter name: who holds what under which attribute."""
    holder: Any = model
    for attribute in name.split("."):
        yield Link(holder=holder, attribute=attribute)
        holder = getattr(holder, attribute)


def owned(model: nn.Module) -> tuple[dict[str, nn.Parameter], list[list[str]]]:
    """Unique parameters under the first of their names, and the other names as [alias, owner].

    A table that is an output matrix too is the embedding's, whichever of the two the class declares first.
    """
    owners: dict[int, str] = {}
    unique: dict[str, nn.Parameter] = {}
    tied = []
    named = list(model.named_parameters(remove_duplicate=False))
    heads_last = sorted(named, key=lambda pair: re.search(r"(^|\.)lm_head\.", pair[0]) is not None)
    for name, parameter in heads_last:
        if id(parameter) in owners:
            tied.append([name, owners[id(parameter)]])
        else:
            owners[id(parameter)] = name
            unique[name] = parameter
    return unique, sorted(tied)


def borrowed_stacks(model: nn.Module, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Paths of layer lists that hold weights, none of them their own: another stack's layers, run as a second one."""
    lists = ((path, m) for path, m in model.named_modules() if path.rpartition(".")[2] in LAYER_LISTS)
    return tuple(
        f"{path}."
        for path, module in lists
        if next(module.parameters(), None) is not None and not any(key.startswith(f"{path}.") for key in sizes)
    )


def persistent_elements(model: nn.Module) -> int:
    """Elements of all buffers that are saved in the state dict."""
    unique = {
        id(buffer): buffer.numel()
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    }
    return sum(unique.values())


TOP_K = ("top_k", "moe_top_k", "num_experts_per_tok", "topk", "top_k_experts")
"""What a router, or the block around it, calls the number of experts a token uses."""


def idle_elements(model: nn.Module) -> int | None:
    """Routed-expert parameters that one token does not use.

    None if the config does not say how many it uses: DeepseekV2Config has no default top-k.
    """
    idle, seen = 0, set()
    for block in model.modules():
        if type(block).__name__ == "Ernie4_5_VLMoeMoeBlock":  # a token of text uses none of the experts for images
            seen |= {id(weight) for weight in block.vision_moe.experts.parameters()}
            idle += sum(weight.numel() for weight in block.vision_moe.experts.parameters())
        if type(block).__name__ == "DogeCDMoE":  # experts are rows of embedding tables
            idle += 2 * (block.num_experts - block.top_k) * block.hidden_size
        for experts in expert_sets(block):
            weights = {id(weight) for weight in experts.parameters()}
            if weights & seen:
                continue
            seen |= weights
            in_block = idle_in_block(block, experts)
            if in_block is None:
                return None
            idle += in_block
    return idle


def expert_sets(block: nn.Module) -> list[nn.Module]:
    """The modules of this block whose parameters are split among experts."""
    return [child for child in block.children() if re.search(r"Experts$", type(child).__name__)]


def top_k_of(block: Any) -> int | None:
    """The number of experts one token uses, from the router beside them or the block around them."""
    name = type(block).__name__
    if name.startswith(("SwitchTransformers", "NllbMoe")):
        return {"S": 1, "N": 2}[name[0]]
    routers = [child for child in block.children() if re.search(r"(Router|TopKGating|Gate)$", type(child).__name__)]
    for holder in (*routers, block, *(router.config for router in routers if hasattr(router, "config"))):
        for key in TOP_K:
            if hasattr(holder, key):
                return getattr(holder, key)  # type: ignore[no-any-return]
    raise LookupError(f"top_k of {name}")


def is_norm(module: nn.Module) -> bool:
    """A norm that a class keeps among its experts works on what each of them puts out."""
    return type(module).__name__.endswith("Norm")


def idle_in_block(block: Any, experts: Any) -> int | None:
    """The same for one block, which has one router beside its experts."""
    children = [child for child in experts.children() if list(child.parameters()) and not is_norm(child)]
    shared = {id(weight) for child in experts.children() if is_norm(child) for weight in child.parameters()}
    parameters = [weight for weight in experts.parameters() if id(weight) not in shared]
    if not parameters or type(experts).__name__ == "InklingSharedExperts":
        return 0
    top_k = top_k_of(block)
    if top_k is None:
        return None
    idle = Fraction()
    for parameter in parameters:
        stacked = getattr(experts, "num_experts", None) or parameter.shape[0]  # LongcatFlash has no such attribute
        total = len(children) if children and not hasattr(experts, "num_experts") else stacked
        if top_k > total:
            raise ValueError(f"top_k {top_k} of {total} experts")
        if not children and parameter.shape[0] % total:
            raise ValueError(f"{type(experts).__name__}: experts are not stacked first")
        idle += Fraction(parameter.numel() * (total - top_k), total)
    return int(idle)


TOWERS = {
    "vision": r"vision_tower|vision_model|visual|image_encoder|img_processor|NeoMMEPatch",
    "audio": r"audio|acoustic|semantic_tokenizer|speech_encoder|embed_tokens_extend|word_timestamp|vocoder|t2u_model",
}
"""What the path of a tower's layers looks like."""

LAYER_LISTS = (
    *("layers", "layer", "h", "blocks", "block", "conformer", "encoders"),
    *("layer_groups", "albert_layer_groups", "self_attends"),
    *("attentions", "ffns", "layer_norm1", "layer_norm2", "H_layers", "L_layers", "h_layers", "l_layers"),
    *("H_module", "L_module"),
)
"""Names of module lists that are stacks of layers."""

CONVOLUTIONAL = "|".join(
    (
        *(r"vqmodel", r"(vision|audio)_tokenizer\.encoder", r"audio_encoder\.(encoder|decoder|quantizer)\.layers"),
        *(r"_seanet\.", r"_quantizer\.", r"code2wav\.decoder", r"spk_encoder", r"\.subsampling\."),
    )
)
"""Networks whose lists are the levels of an image or a sound, or books of codes, not layers."""

SPLIT_LAYERS = ("attentions", "ffns", "layer_norm1", "layer_norm2")
"""XLM keeps the parts of its layers in parallel lists."""


def stack_label(model_type: str, path: str) -> str:
    """What the layer list at this path belongs to: encoder, decoder or a tower."""
    for label, pattern in TOWERS.items():
        if re.search(pattern, path):
            return label
    if "decoder" in path:
        return "decoder"
    if "encoder" in path or model_type in ENCODER_ONLY:
        return "encoder"
    return "decoder"


def layer_totals(model: Any, sizes: Mapping[str, int], borrowed: tuple[str, ...]) -> dict[str, list[list[int]]]:
    """Unique parameters of each repeated layer in order, as [[repeat, total], ...] per stack.

    A second stack of the same kind is named by its path.
    """
    totals: dict[str, list[int]] = {}
    lists: list[str] = []
    owners: dict[str, str] = {}
    for path, module in model.named_modules():
        if not isinstance(module, nn.ModuleList) or any(path.startswith(f"{p}.") for p in lists):
            continue
        parent, _, name = path.rpartition(".")
        if name not in LAYER_LISTS or f"{path}.".startswith(borrowed) or re.search(CONVOLUTIONAL, path):
            continue
        if any(isinstance(child, nn.ModuleList) for child in module):  # Funnel: blocks of layers
            continue
        lists.append(path)
        counts = [
            sum(size for key, size in sizes.items() if key.startswith(f"{path}.{index}."))
            for index in range(len(module))
        ]
        label = stack_label(model.config.model_type, path)
        if name in SPLIT_LAYERS and parent in owners:
            counts = [old + new for old, new in zip(totals[owners[parent]], counts, strict=True)]
            label = owners[parent]
        elif label in totals:
            label = path
        owners[parent] = label
        totals[label] = counts
    stacks: dict[str, list[list[int]]] = {}
    for label, counts in sorted(totals.items()):
        runs = stacks[label] = []
        for total in counts:
            if runs and runs[-1][1] == total:
                runs[-1][0] += 1
            else:
                runs.append([1, total])
    return stacks


def category_totals(model: nn.Module, sizes: Mapping[str, int]) -> dict[str, int]:
    """Parameters per category, without the empty ones; raises if a parameter falls through."""
    totals: dict[str, int] = {}
    for name, size in sizes.items():
        kind = category(tuple(links(model, name)))
        totals[kind] = totals.get(kind, 0) + size
    return {kind: total for kind, total in sorted(totals.items()) if total}


def reported(categories: Mapping[str, int]) -> dict[str, int]:
    """The categories by the names a golden uses."""
    totals: dict[str, int] = {}
    for kind, total in categories.items():
        name = REPORTED_AS.get(kind, kind)
        totals[name] = totals.get(name, 0) + total
    return dict(sorted(totals.items()))


def measure(fields: Fields) -> dict[str, Any]:
    """Everything a golden says about the model that `transformers` builds for this config."""
    model = build(fields)
    unique, tied = owned(model)
    sizes = {name: parameter.numel() for name, parameter in unique.items()}
    total, idle = sum(sizes.values()), idle_elements(model)
    categories = category_totals(model, sizes)
    borrowed = borrowed_stacks(model, sizes)
    if sum(categories.values()) != total:
        raise ValueError(f"categories sum to {sum(categories.values())}, not to {total}")
    record = {
        "class": type(model).__name__,
        **VERSIONS,
        "total": total,
        "active": None if idle is None else total - idle,
        "buffers": persistent_elements(model),
        "tied": [[alias, owner] for alias, owner in tied if not alias.startswith(borrowed)],
        "layers": layer_totals(model, sizes, borrowed),
        "categories": reported(categories),
    }
    if towers := sum(categories.get(kind, 0) for kind in TOWER_CATEGORIES):
        record["text_total"] = total - towers
    if fields["model_type"] in ALWAYS_TIED and fields.get("tie_word_embeddings") is False:
        record |= loaded_t5(model, total)
    return record


ALWAYS_TIED = ("t5",)


def loaded_t5(model: Any, total: int) -> dict[str, int]:
    """The total if the checkpoint brings its own output head, as T5 v1.1 and Flan-T5 do.

    T5Config reads `tie_word_embeddings: false` as "do not scale the logits" and always ties. Only
    `from_pretrained` unties the head, when it finds both tensors in the checkpoint.
    """
    if not hasattr(model, "lm_head"):
        return {}
    return {"loaded_total": total + int(model.lm_head.weight.numel())}
