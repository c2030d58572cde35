# How every target of this project is compiled and linked.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The build tree has the layout of the installed Python package, so that the same search finds plugins in both.
set(LTC_PACKAGE_DIR ${CMAKE_BINARY_DIR}/python/ltc)

find_program(LTC_CCACHE ccache)
if(LTC_CCACHE)
  # Without these it keeps nothing of what includes a precompiled header.
  set(ltc_launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${LTC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${ltc_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ltc_launcher})
endif()
# GCC looks for garbage again and again in what a precompiled header brought: a tenth of the time of a file with PyTorch's headers.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
find_program(LTC_MOLD mold)
if(LTC_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(LTC_SANITIZE)
  # -O1 and -g1 take half the time of -O2 and -g, and a stack has its lines all the same.
  add_compile_options(-fsanitize=${LTC_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)  # v[v.size()] within the capacity
  add_link_options(-fsanitize=${LTC_SANITIZE})
  # With sanitizers GCC warns of what the standard library has initialised, and of the end of its short strings.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
  if(LTC_SANITIZE MATCHES thread)
    add_compile_options(-Wno-tsan)  # fences, of which the sanitizer knows nothing; PyTorch's headers have one too
  endif()
endif()

# Warnings are errors in our code; headers of dependencies are SYSTEM and exempt. GCC 12 warns of overlap inside its own
# std::string (GCC bug 105651). Clang warns of a deprecated function that libstdc++'s stable_sort calls.
add_library(ltc_warnings INTERFACE)
target_compile_options(ltc_warnings INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

# Compiles the files of each folder of a target a few at a time. A file that comes or goes moves its neighbours only.
function(ltc_compile_together target most)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR group "0${count_${folder}} / ${most}")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
