import scanverify

test_scan = scanverify.properties_of("scanu_split.py")
