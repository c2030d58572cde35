# Writes OUT: a driver's library as the loader sees it, with every function that driver_api.h names; each answers
# CUDA_ERROR_NO_DEVICE. With ONLY=1 it has the first alone, as a driver that is too old for the rest.
file(READ ${TABLE} table)
string(REGEX MATCHALL "X\\(cu[A-Za-z0-9_]+" rows "${table}")
set(text "")
foreach(row IN LISTS rows)
  string(REPLACE "X(" "" name ${row})
  string(APPEND text "__attribute__((visibility(\"default\"))) int ${name}(void) { return 100; }\n")
  if(ONLY)
    break()
  endif()
endforeach()
file(WRITE ${OUT} "${text}")
