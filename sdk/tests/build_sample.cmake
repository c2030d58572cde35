# cmake -DBUILD=... -DSAMPLE=... -DLIBRARY=... -DWORK=... -DCONFORMANCE=... -DGENERATOR=... -P build_sample.cmake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component sdk --prefix ${WORK}/sdk)
file(COPY ${SAMPLE}/ DESTINATION ${WORK}/source)
run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/sdk -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CONFORMANCE} --backend ${WORK}/build/plugins/libltc_${LIBRARY}.so --tier loader)
