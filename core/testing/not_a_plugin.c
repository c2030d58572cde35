/* A shared library without ltc_plugin_entry. */
int ltc_test_not_an_entry(void);
int ltc_test_not_an_entry(void) { return 0; }
