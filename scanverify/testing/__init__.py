"""For pytest: the plugin and :func:`scanverify.properties_of`.

The one room that imports pytest.
"""
