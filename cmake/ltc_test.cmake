find_package(GTest)
if(LTC_TESTS AND NOT GTest_FOUND)
  message(FATAL_ERROR "The unit tests need GoogleTest (libgtest-dev, libgmock-dev); -DLTC_TESTS=OFF builds without them.")
endif()

# ltc_use_gtest(<program>): GoogleTest, whose headers are compiled once for all programs; optimising what runs once is left out.
if(GTest_FOUND)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gtest_headers.cpp CONTENT "")
  add_executable(ltc_gtest_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/gtest_headers.cpp)
  target_link_libraries(ltc_gtest_headers PRIVATE ltc_warnings GTest::gmock_main)
  target_compile_options(ltc_gtest_headers PRIVATE -O1)
  target_precompile_headers(ltc_gtest_headers PRIVATE <gmock/gmock.h>)
endif()
function(ltc_use_gtest program)
  target_link_libraries(${program} PRIVATE ltc_warnings GTest::gmock)
  target_compile_options(${program} PRIVATE -O1)
  target_precompile_headers(${program} REUSE_FROM ltc_gtest_headers)
endfunction()

# ltc_add_test(<name> SOURCES <file>... [LINK <target>...] [SHARDS <n>]): a GoogleTest program that ctest runs; with SHARDS as n
# tests, <name>_0 and so on, that share its cases; those are long, so they begin before others.
function(ltc_add_test name)
  if(NOT LTC_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  ltc_use_gtest(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(cache LTC_CACHE=0)  # a compile is a compile
  if(NOT arg_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120 ENVIRONMENT ${cache})
    return()
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(${name}_${shard} PROPERTIES
      TIMEOUT 600 COST 60 ENVIRONMENT "${cache};GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# ltc_add_conformance_test(<name> <library> [ARGS...]): ltc-conformance as the test conformance_<name>, whose results go into the report.
set(LTC_RESULTS ${CMAKE_BINARY_DIR}/conformance/results)
file(MAKE_DIRECTORY ${LTC_RESULTS})
function(ltc_add_conformance_test name library)
  add_test(NAME conformance_${name}
    COMMAND ltc_conformance --backend ${library} --json ${LTC_RESULTS}/${name}.json ${ARGN})
  set_tests_properties(conformance_${name} PROPERTIES TIMEOUT 240)
  set_property(GLOBAL APPEND PROPERTY ltc_conformance_results ${name})
endfunction()

# The test conformance_report makes one page of the results that the others have written; it runs no check, and also after failures.
function(ltc_add_conformance_report)
  get_property(names GLOBAL PROPERTY ltc_conformance_results)
  if(NOT names OR NOT Python_EXECUTABLE)
    return()
  endif()
  list(TRANSFORM names PREPEND conformance_ OUTPUT_VARIABLE tests)
  list(TRANSFORM names REPLACE "(.+)" "${LTC_RESULTS}/\\1.json" OUTPUT_VARIABLE files)
  add_test(NAME conformance_report
    COMMAND ${Python_EXECUTABLE} -m ltc_conformance report --html ${LTC_RESULTS}/report.html ${files})
  set_tests_properties(conformance_report PROPERTIES DEPENDS "${tests}" ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python")
endfunction()
