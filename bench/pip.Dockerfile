# What `./inv bench` measures strata against: a careful Dockerfile with pip.  Requirements are
# pinned by hash and come in two steps, PyTorch's below Jupyter's; wheels and requirements are
# mounted, never copied; no cache is kept and no owner changed: what the user can't write, the
# user can't break.  Its parent, packages and wheels are strata's own.
FROM parent
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]

RUN <<END
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends \
    ca-certificates \
    curl \
    git \
    less \
    libnss-cache \
    locales \
    nano \
    netbase \
    openssh-client \
    procps \
    rsync \
    tini \
    tzdata
localedef --inputfile en_US --charmap UTF-8 en_US.UTF-8
rm -rf /var/lib/apt/lists/*
useradd --no-log-init --create-home --shell /bin/bash --uid 1000 dev
END

# The base's Python has no ensurepip: pip runs from its wheel, and installs itself.
RUN --mount=type=bind,from=wheels,source=pytorch,target=/mnt/wheels \
    --mount=type=bind,source=pytorch.txt,target=/mnt/requirements.txt <<END
python3 -m venv --without-pip /opt/env
PYTHONPATH=$(echo /mnt/wheels/pip-*.whl) \
    /opt/env/bin/python -m pip install --no-cache-dir --no-index --no-deps \
    --require-hashes --find-links /mnt/wheels --requirement /mnt/requirements.txt
END

RUN --mount=type=bind,from=wheels,source=jupyter,target=/mnt/wheels \
    --mount=type=bind,source=jupyter.txt,target=/mnt/requirements.txt \
    /opt/env/bin/python -m pip install --no-cache-dir --no-index --no-deps \
    --require-hashes --find-links /mnt/wheels --requirement /mnt/requirements.txt

ENV LANG=C.UTF-8 PATH=/opt/env/bin:$PATH
USER 1000
WORKDIR /home/dev
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["jupyter", "lab", "--ip=0.0.0.0"]
