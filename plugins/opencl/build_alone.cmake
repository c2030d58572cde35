# A vendor's way: this plugin and what it shares with others, copied out of the tree, built against an installed SDK with nothing else. It needs
# no PyTorch, and the conformance suite enters it.
include(${CMAKE_CURRENT_LIST_DIR}/../../sdk/tests/run.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component sdk --prefix ${WORK}/sdk)
file(COPY ${PLUGINS}/build.cmake ${PLUGINS}/kernels ${PLUGINS}/device ${PLUGINS}/opencl DESTINATION ${WORK}/source)
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}")  # a list, which an argument would take apart
run(${CMAKE_COMMAND} -S ${WORK}/source/opencl -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/sdk)
run(${CMAKE_COMMAND} --build ${WORK}/build --parallel 2)
run(ldd ${WORK}/build/plugins/libltc_opencl.so)
if(output MATCHES "libtorch|libc10")  # an address may contain c10
  message(FATAL_ERROR "linked with PyTorch:\n${output}")
endif()
run(${CONFORMANCE} --backend ${WORK}/build/plugins/libltc_opencl.so --tier loader)
