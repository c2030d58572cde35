# find_package(LtcSdk): target LtcSdk::plugin, the header of the C ABI; function ltc_add_plugin.
if(NOT TARGET LtcSdk::plugin)
  add_library(LtcSdk::plugin INTERFACE IMPORTED)
  get_filename_component(ltc_sdk_include ${CMAKE_CURRENT_LIST_DIR}/../../../include ABSOLUTE)
  target_include_directories(LtcSdk::plugin INTERFACE ${ltc_sdk_include})
endif()
include(${CMAKE_CURRENT_LIST_DIR}/ltc_plugin.cmake)
