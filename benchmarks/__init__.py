"""Measurements: ``python3 -m benchmarks NAME ...`` runs ``benchmarks.NAME.main(arguments)``."""
