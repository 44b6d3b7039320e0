"""The body of a request with manifests. It loads neither their views nor the models of their forms."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, model_validator


class Manifests(RootModel[Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]]):
    """Manifests: one as an object, or several as a list. YAML has them as documents of one stream."""

    model_config = ConfigDict(hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _as_list(cls, document: Any) -> Any:
        return [document] if isinstance(document, dict) else document
