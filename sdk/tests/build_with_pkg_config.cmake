# cmake -DBUILD=... -DSAMPLE=... -DWORK=... -DCONFORMANCE=... -DCC=... -DPKG_CONFIG=... -P build_with_pkg_config.cmake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component sdk --prefix ${WORK}/sdk)
file(COPY ${SAMPLE}/null_plugin.c DESTINATION ${WORK}/source)
set(ENV{PKG_CONFIG_PATH} ${WORK}/sdk/lib/pkgconfig)
run(${PKG_CONFIG} --atleast-version=1.0 ltc-sdk)
run(${PKG_CONFIG} --cflags --libs ltc-sdk)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CC} -std=c99 -O2 ${WORK}/source/null_plugin.c ${flags} -o ${WORK}/libltc_null.so)
run(${CONFORMANCE} --backend ${WORK}/libltc_null.so --tier loader)
