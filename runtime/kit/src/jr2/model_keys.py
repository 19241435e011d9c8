"""The environment variables that model providers take their keys from, and where each key belongs.

A key of this table that an Instance holds needs no `hosts`: it is bound to the host of its provider,
or to the gateway that `harness.catalog` names for the provider. A provider without one host, such
as a cloud with an address for each region, has none here, and its key needs `hosts`.

Source: spec/authoring.md §3.5 (Known model keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A variable that holds the key of a provider.

    Args:
        name: the variable.
        providers: the ids that stand before the `/` of a model.
        host: where its providers are called; `None` when there is no single host.
    """

    name: str
    providers: tuple[str, ...]
    host: str | None = None


_KEYS: Final = (
    ModelKey("ANTHROPIC_API_KEY", ("anthropic",), "api.anthropic.com"),
    ModelKey("ANTHROPIC_AUTH_TOKEN", ("anthropic",), "api.anthropic.com"),
    ModelKey("ANTHROPIC_OAUTH_TOKEN", ("anthropic",), "api.anthropic.com"),
    ModelKey("OPENAI_API_KEY", ("openai",), "api.openai.com"),
    ModelKey("GEMINI_API_KEY", ("google",), "generativelanguage.googleapis.com"),
    ModelKey("GOOGLE_CLOUD_API_KEY", ("google-vertex",)),
    ModelKey("COPILOT_GITHUB_TOKEN", ("github-copilot",), "api.individual.githubcopilot.com"),
    ModelKey("AWS_BEARER_TOKEN_BEDROCK", ("amazon-bedrock",)),
    ModelKey("AZURE_OPENAI_API_KEY", ("azure-openai-responses",)),
    ModelKey("ANT_LING_API_KEY", ("ant-ling",), "api.ant-ling.com"),
    ModelKey(
        "QWEN_TOKEN_PLAN_API_KEY",
        ("qwen-token-plan",),
        "token-plan.ap-southeast-1.maas.aliyuncs.com",
    ),
    ModelKey(
        "QWEN_TOKEN_PLAN_CN_API_KEY",
        ("qwen-token-plan-cn",),
        "token-plan.cn-beijing.maas.aliyuncs.com",
    ),
    ModelKey("NVIDIA_API_KEY", ("nvidia",), "integrate.api.nvidia.com"),
    ModelKey("DEEPSEEK_API_KEY", ("deepseek",), "api.deepseek.com"),
    ModelKey("GROQ_API_KEY", ("groq",), "api.groq.com"),
    ModelKey("CEREBRAS_API_KEY", ("cerebras",), "api.cerebras.ai"),
    ModelKey("XAI_API_KEY", ("xai",), "api.x.ai"),
    ModelKey("MISTRAL_API_KEY", ("mistral",), "api.mistral.ai"),
    ModelKey("KIMI_API_KEY", ("kimi-coding",), "api.kimi.com"),
    ModelKey("OPENROUTER_API_KEY", ("openrouter",), "openrouter.ai"),
    ModelKey("AI_GATEWAY_API_KEY", ("vercel-ai-gateway",), "ai-gateway.vercel.sh"),
    ModelKey("ZAI_API_KEY", ("zai",), "api.z.ai"),
    ModelKey("ZAI_CODING_CN_API_KEY", ("zai-coding-cn",), "open.bigmodel.cn"),
    ModelKey("MINIMAX_API_KEY", ("minimax",), "api.minimax.io"),
    ModelKey("MINIMAX_CN_API_KEY", ("minimax-cn",), "api.minimaxi.com"),
    ModelKey("MOONSHOT_API_KEY", ("moonshotai", "moonshotai-cn")),
    ModelKey("HF_TOKEN", ("huggingface",), "router.huggingface.co"),
    ModelKey("FIREWORKS_API_KEY", ("fireworks",), "api.fireworks.ai"),
    ModelKey("TOGETHER_API_KEY", ("together",), "api.together.ai"),
    ModelKey("OPENCODE_API_KEY", ("opencode", "opencode-go"), "opencode.ai"),
    ModelKey("CLOUDFLARE_API_KEY", ("cloudflare-workers-ai", "cloudflare-ai-gateway")),
    ModelKey("XIAOMI_API_KEY", ("xiaomi",), "api.xiaomimimo.com"),
    ModelKey(
        "XIAOMI_TOKEN_PLAN_CN_API_KEY",
        ("xiaomi-token-plan-cn",),
        "token-plan-cn.xiaomimimo.com",
    ),
    ModelKey(
        "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
        ("xiaomi-token-plan-ams",),
        "token-plan-ams.xiaomimimo.com",
    ),
    ModelKey(
        "XIAOMI_TOKEN_PLAN_SGP_API_KEY",
        ("xiaomi-token-plan-sgp",),
        "token-plan-sgp.xiaomimimo.com",
    ),
    ModelKey("RADIUS_API_KEY", ("radius",)),
)

MODEL_KEYS: Final[Mapping[str, ModelKey]] = {key.name: key for key in _KEYS}
"""Each known key by the name of its variable."""

PROVIDERS: Final = frozenset(provider for key in _KEYS for provider in key.providers)
"""The ids of the providers of the catalog."""
