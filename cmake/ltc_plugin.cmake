# ltc_add_plugin(<name> SOURCES <file>... [LINK <target>...])
# Builds libltc_<name>.so, which exports ltc_plugin_entry and nothing else, into the plugins folder of the Python package.
set(LTC_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/plugin.exports)

function(ltc_add_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(target ltc_plugin_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ltc_sdk ltc_warnings ${arg_LINK})
  target_link_options(${target} PRIVATE -Wl,--version-script=${LTC_PLUGIN_EXPORTS})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ltc_${name}
    LIBRARY_OUTPUT_DIRECTORY ${LTC_PACKAGE_DIR}/plugins
    LINK_DEPENDS ${LTC_PLUGIN_EXPORTS})
  install(TARGETS ${target} LIBRARY DESTINATION ltc/plugins)
endfunction()
