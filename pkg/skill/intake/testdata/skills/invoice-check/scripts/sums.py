total = sum(line["net"] * (1 + line["tax"]) for line in invoice)
