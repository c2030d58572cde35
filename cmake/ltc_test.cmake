# ltc_add_test(<name> SOURCES <file>... [LINK <target>...]): a GoogleTest program that ctest runs.
if(LTC_TESTS)
  find_package(GTest REQUIRED)
endif()

function(ltc_add_test name)
  if(NOT LTC_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} ltc_warnings GTest::gmock_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 ENVIRONMENT LTC_CACHE=0)  # a compile is a compile
endfunction()
