# ltc_add_test(<name> SOURCES <file>... [LINK <target>...] [SHARDS <n>]): a GoogleTest program that ctest runs; with SHARDS as n
# tests, <name>_0 and so on, that share its cases.
if(LTC_TESTS)
  find_package(GTest REQUIRED)
endif()

function(ltc_add_test name)
  if(NOT LTC_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} ltc_warnings GTest::gmock_main)
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
      TIMEOUT 600 ENVIRONMENT "${cache};GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
