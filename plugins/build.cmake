# How the plugins of these folders are built, in this project or alone, against an installed SDK. To be included after project().
if(NOT COMMAND ltc_add_plugin)  # alone
  set(CMAKE_CXX_STANDARD 20)
  find_package(LtcSdk REQUIRED)
  foreach(shared kernels device)
    add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/${shared} ${shared})
  endforeach()
endif()

# ltc_add_part(<name> SOURCES <file>... LINK <target>...): what plugins share, or a plugin's own that its tests reach inside.
# Headers are included by the path from this folder.
function(ltc_add_part name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  if(TARGET ltc_warnings)
    target_link_libraries(${name} PRIVATE ltc_warnings)
  endif()
endfunction()
