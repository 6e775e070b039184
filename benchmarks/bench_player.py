"""How fast the film is: making it, opening it, drawing a frame, and telling why after a pause.

``python -m benchmarks.bench_player`` prints one line a film. Times in the browser are those of
script, measured in Chromium without a graphics card; the last column is the time from the pause to
the inspector's new text, drawing included.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from playwright.sync_api import Browser, sync_playwright

from model import catalogue
from model.film import film
from model.iteration_time import Linear
from model.result import SimulationResult
from model.scenario import Memory, Scenario
from model.schedulers import POLICIES
from model.simulator import simulate
from model.workload import Arrivals, Lengths, Stream, Workload
from tests.browser.conftest import FLAGS, browser_path
from ui.player.standalone import film_html

FRAMES = 300

MEASURE = """async (frames) => {
    const player = window.iterationLab;
    const film = player.film;
    const sorted = (list) => list.sort((a, b) => a - b);
    const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))];
    const opening = [];
    const Film = film.constructor;
    for (let i = 0; i < 3; i++) {
        const began = performance.now();
        new Film(film.bytes);
        opening.push(performance.now() - began);
    }
    const busiest = film.rows.running.indexOf(Math.max(...film.rows.running));
    player.seek(busiest);
    player.draw();
    const drawing = [];
    for (let i = 0; i < frames; i++) {
        player.frame = Math.min(busiest + i, film.length - 1);
        const began = performance.now();
        player.draw();
        drawing.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
    }
    const telling = [];
    player.atEvents = "play";
    player.setSpeed(16);
    player.seek(0);
    for (let i = 0; i < 20; i++) {
        player.play();
        await new Promise((done) => setTimeout(done, 120));
        const began = performance.now();
        player.pause();
        const text = () => player.inspector.iteration.textContent;
        const wanted = player.words.text("why.iteration", { n: player.frame });
        while (text() !== wanted) await new Promise((done) => setTimeout(done, 0));
        telling.push(performance.now() - began);
    }
    return {
        open: Math.min(...opening),
        median: at(sorted(drawing), 0.5), p95: at(drawing, 0.95),
        tell: at(sorted(telling), 0.9),
    };
}"""


@dataclass(frozen=True)
class Measured:
    """One film: sizes, and milliseconds."""

    name: str
    iterations: int
    running: int
    kv_blocks: int
    window_bytes: int
    windows: int
    encode_ms: float
    open_ms: float
    draw_median_ms: float
    draw_p95_ms: float
    pause_ms: float

    def line(self) -> str:
        return (
            f"{self.name:<22}{self.iterations:>8,} it.{self.running:>5} running"
            f"{self.kv_blocks:>8,} blocks  {self.windows} x {self.window_bytes / 1e3:>6.0f} kB  "
            f"encode {self.encode_ms:>5.0f}  open {self.open_ms:>5.0f}  "
            f"draw {self.draw_median_ms:>5.2f} (p95 {self.draw_p95_ms:>5.2f})  "
            f"pause to why {self.pause_ms:>4.0f} ms"
        )


def wide() -> SimulationResult:
    """256 slots, all taken, and 2,000 blocks, all used."""
    stream = Stream(
        "wide",
        600,
        Arrivals("at_once"),
        Lengths("uniform", mean_tokens=80, low_tokens=20, high_tokens=140),
        Lengths("uniform", mean_tokens=120, low_tokens=20, high_tokens=220),
    )
    policy = POLICIES["vllm-v1"](max_num_seqs=256, max_num_batched_tokens=2048)
    memory = Memory(kv_blocks=2000, max_model_len=1024)
    workload = Workload((stream,))
    clock = Linear(0.005, 5e-5)
    return simulate(Scenario(workload, policy, clock, model=None, hardware=None, memory=memory))


def long() -> SimulationResult:
    """More than 20,000 iterations under a steady load."""
    stream = Stream(
        "long",
        2800,
        Arrivals("poisson", rate_per_s=8.0),
        Lengths("lognormal", mean_tokens=300, cv=1.0, max_tokens=4000),
        Lengths("geometric", mean_tokens=200, max_tokens=2000),
    )
    return simulate(Scenario(Workload((stream,)), POLICIES["vllm-v1"]()))


def measure(browser: Browser, name: str, result: SimulationResult) -> Measured:
    """Encode, open and play the film of a result."""
    began = time.perf_counter()
    made = film(result)
    encode_ms = (time.perf_counter() - began) * 1e3
    page = browser.new_page(viewport={"width": 1366, "height": 800})
    page.set_content(film_html(result))
    page.wait_for_function("() => window.iterationLab && window.iterationLab.unit")
    found = page.evaluate(MEASURE, FRAMES)
    page.close()
    return Measured(
        name,
        made.rows,
        int(result.iterations["running"].max()),
        result.kv_blocks,
        max(map(len, made.windows)),
        len(made.windows),
        encode_ms,
        found["open"],
        found["median"],
        found["p95"],
        found["tell"],
    )


def films() -> dict[str, SimulationResult]:
    """What is measured."""
    presets = catalogue.presets()
    return {
        "256 slots": wide(),
        "20,000 iterations": long(),
        "preemption-storm": simulate(presets["preemption-storm"].scenario),
        "law": simulate(presets["law"].scenario),
    }


def main() -> None:
    """Print one line a film."""
    with sync_playwright() as playwright:
        flags = [*FLAGS, "--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=browser_path(), args=flags)
        for name, result in films().items():
            print(measure(browser, name, result).line())
        browser.close()


if __name__ == "__main__":
    main()
