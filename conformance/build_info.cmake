# cmake -DSOURCE=<root of the sources> -DVERSION=<of the host> -DOUTPUT=<header> -P build_info.cmake
# Writes a header with the commit of the sources, and whether files that git knows have changed since. Sources without a repository of
# their own have no commit.
cmake_minimum_required(VERSION 3.25)
set(commit "")
set(clean false)
set(git git --no-optional-locks -C ${SOURCE})
execute_process(COMMAND ${git} rev-parse --show-toplevel HEAD
  OUTPUT_VARIABLE lines ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(NOT failed)
  string(REPLACE "\n" ";" lines "${lines}")
  list(GET lines 0 top)
  file(REAL_PATH "${SOURCE}" source)
  if(top STREQUAL source)
    list(GET lines 1 commit)
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes RESULT_VARIABLE failed)
    if(NOT failed AND changes STREQUAL "")
      set(clean true)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Written by build_info.cmake.
#pragma once
#define LTC_BUILD_VERSION \"@VERSION@\"
#define LTC_BUILD_COMMIT \"@commit@\"
#define LTC_BUILD_CLEAN @clean@
" @ONLY)
