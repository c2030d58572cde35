# ltc_add_plugin(<name> SOURCES <file>... [LINK <target>...])
# Builds libltc_<name>.so, which exports ltc_plugin_entry and nothing else.
#
# The same file serves this project, where plugins go into the Python package, and vendors' projects, which get it from
# find_package(LtcSdk) and find the library in the folder `plugins` of their build.
set(LTC_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/plugin.exports)

function(ltc_add_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(target ltc_plugin_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE LtcSdk::plugin ${arg_LINK})
  target_link_options(${target} PRIVATE -Wl,--version-script=${LTC_PLUGIN_EXPORTS})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ltc_${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${LTC_PLUGIN_EXPORTS})
  if(LTC_PACKAGE_DIR)
    target_link_libraries(${target} PRIVATE ltc_warnings)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${LTC_PACKAGE_DIR}/plugins)
    install(TARGETS ${target} LIBRARY DESTINATION ltc/plugins)
  endif()
endfunction()
