"""The screen of `inakit top`: rows of text for processors, links and switches, as wide as the terminal."""

from __future__ import annotations

from itertools import zip_longest

from rich.text import Text

from inakit.experiments.inspect.rates import LinkRate, ProcessorRate, Rates, SwitchRate
from inakit.topo.live.running import RunningNetwork
from inakit.traffic.measure.verdict import Limits

FULL_LOAD = 0.95
"""From this load on a link is highlighted."""
LEAST_IDLE = Limits().free
"""Below this idle share a processor is highlighted: if it is the emulation's own work, a run is OVERLOADED by it."""
FIGURES = 22
"""How many characters the figures take that follow a link's or a switch's name."""
GAP = "  "
HEAD_LINES = 3
"""Lines of the screen that are not rows of a processor, a link or a switch."""


def screen(network: RunningNetwork, found: Rates, widths: tuple[int, int], rows: int) -> Text:
    """The busiest processors above, links to the left and switches to the right, in `rows` lines."""
    processors = sorted(found.processors, key=lambda processor: processor.idle)[: max(2, rows // 6)]
    room = rows - HEAD_LINES - len(processors)
    left, right = widths
    title = f"{network.fabric}: {len(network.switches)} switches, {len(network.hosts)} hosts; network {network.id}"
    lists = zip_longest(link_lines(found.links[:room], left), switch_lines(found.switches[:room], right))
    lines = [
        Text(cut(title, left + len(GAP) + right), style="bold"),
        *map(processor_line, processors),
        Text(),
        *(Text.assemble(link or " " * left, GAP, switch or "") for link, switch in lists),
    ]
    return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)


def widths_within(columns: int) -> tuple[int, int]:
    """How wide the lists of links and of switches are on a screen of this many columns."""
    right = FIGURES + max(8, (columns - 2 * FIGURES - len(GAP)) * 3 // 8)
    return columns - len(GAP) - right, right


def widths_of(found: Rates) -> tuple[int, int]:
    """How wide the lists of links and of switches are if no name is cut."""
    left = max((len(link_name(link)) for link in found.links), default=0)
    right = max((len(switch.name) for switch in found.switches), default=0)
    return left + FIGURES, right + FIGURES


def processor_line(processor: ProcessorRate) -> Text:
    """A processor's line, red if its idle share is below `LEAST_IDLE`."""
    text = (
        f"CPU {processor.number:<3} {processor.role:20} idle {processor.idle:4.0%}  "
        f"softirq {processor.softirq:4.0%}  drops {processor.drops}"
    )
    return Text(text, style="red" if processor.idle < LEAST_IDLE else "")


def link_lines(links: tuple[LinkRate, ...], width: int) -> list[Text]:
    """A heading, and a line for each direction of a link: Mbit/s of frames, share of the capacity, drops so far."""
    name = width - FIGURES
    lines = [Text(f"{'link':{name}}{'Mbit/s':>9}{'load':>6}{'drops':>7}", style="bold")]
    for link in links:
        style = "red" if link.drops else "yellow" if link.load >= FULL_LOAD else ""
        figures = f"{link.rate_bps / 1e6:9.3f}{link.load:6.0%}{link.drops:7}"
        lines.append(Text(f"{cut(link_name(link), name):{name}}{figures}", style=style))
    return lines


def link_name(link: LinkRate) -> str:
    """Who sends to whom over a link."""
    return f"{link.sender} → {link.receiver}"


def switch_lines(switches: tuple[SwitchRate, ...], width: int) -> list[Text]:
    """A heading, and a line for each switch: packets per second in and out, drops of its ports so far."""
    name = width - FIGURES
    lines = [Text(f"{'switch':{name}}{'in/s':>8}{'out/s':>8}{'drops':>6}", style="bold")]
    for switch in switches:
        figures = f"{switch.in_pps:8.0f}{switch.out_pps:8.0f}{switch.drops:6}"
        lines.append(Text(f"{cut(switch.name, name):{name}}{figures}", style="red" if switch.drops else ""))
    return lines


def cut(text: str, width: int) -> str:
    """The text in at most `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
