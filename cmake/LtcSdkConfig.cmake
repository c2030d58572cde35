# find_package(LtcSdk): target LtcSdk::plugin, the header of the C ABI; function ltc_add_plugin. In the Python package also target
# LtcSdk::runtime, which runs archives of ltc.export.
if(NOT TARGET LtcSdk::plugin)
  add_library(LtcSdk::plugin INTERFACE IMPORTED)
  get_filename_component(ltc_sdk_include ${CMAKE_CURRENT_LIST_DIR}/../../../include ABSOLUTE)
  target_include_directories(LtcSdk::plugin INTERFACE ${ltc_sdk_include})
endif()
get_filename_component(ltc_runtime_library ${CMAKE_CURRENT_LIST_DIR}/../../../../libltc_runtime.so ABSOLUTE)
if(NOT TARGET LtcSdk::runtime AND EXISTS ${ltc_runtime_library})
  add_library(LtcSdk::runtime SHARED IMPORTED)
  set_target_properties(LtcSdk::runtime PROPERTIES IMPORTED_LOCATION ${ltc_runtime_library})
  target_link_libraries(LtcSdk::runtime INTERFACE LtcSdk::plugin)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/ltc_plugin.cmake)
