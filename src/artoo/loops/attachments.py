"""What a prompt says of the images that a person attached: their names, and whether the reader is shown them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artoo.contracts.images import AttachedImage
from artoo.prompts.segments import Segment

_SHOWN = "Attached images, shown after these words: {names}"
_NOT_SHOWN = "Attached images, which you are not shown: {names}"


def with_images(
    segments: Mapping[Segment, str], images: Sequence[AttachedImage], *, shown: bool
) -> Mapping[Segment, str]:
    """The segments with that line, where there are images, below what is to be done."""
    if not images:
        return segments
    place = Segment.SUBTASK if segments.get(Segment.SUBTASK) else Segment.TASK
    names = "; ".join(f"{number}. {image.name}" for number, image in enumerate(images, 1))
    line = (_SHOWN if shown else _NOT_SHOWN).format(names=names)
    return {**segments, place: f"{segments.get(place, '')}\n{line}".strip()}
