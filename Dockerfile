# artoo for a container, as a plain user. Build it with: docker build -t artoo .
#
# Commands of tasks run in a sandbox of their own, which needs user namespaces. Docker's default profiles forbid
# them; without, artoo falls back to asking before every command and says so in `artoo doctor`. Allow them with
#
#   docker run --rm -it --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     -v "$PWD:/work" -v artoo-home:/home/artoo/.artoo artoo "how many Python files are here?"
#
# The container then keeps less out than it does by default, and artoo's own sandbox keeps commands in.
FROM python:3.13-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 artoo

WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY requirements ./requirements
COPY src ./src
RUN python -m pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
RUN python -m pip install --no-cache-dir --no-deps .

USER artoo
WORKDIR /work
ENTRYPOINT ["artoo"]
