# Target ltc::torch: the libtorch of the `torch` package of the Python interpreter that builds.
# Asking the package itself (not its TorchConfig.cmake) keeps a CUDA build of torch from demanding a CUDA toolkit.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__, sep=';')"
  OUTPUT_VARIABLE ltc_torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE ltc_torch_missing
  ERROR_VARIABLE ltc_torch_error)
if(ltc_torch_missing)
  message(FATAL_ERROR "${Python_EXECUTABLE} cannot import torch (pip install torch==2.13.0):\n${ltc_torch_error}")
endif()
list(GET ltc_torch_facts 0 LTC_TORCH_DIR)
list(GET ltc_torch_facts 1 LTC_TORCH_VERSION)
message(STATUS "torch ${LTC_TORCH_VERSION} in ${LTC_TORCH_DIR}")
# A C++ extension fits one minor version of PyTorch.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" LTC_TORCH_MINOR "${LTC_TORCH_VERSION}")
if(SKBUILD AND NOT "${SKBUILD_PROJECT_VERSION_FULL}" MATCHES "torch${LTC_TORCH_MINOR}$")
  message(FATAL_ERROR "pyproject.toml names the wheel ${SKBUILD_PROJECT_VERSION_FULL}, but this is PyTorch ${LTC_TORCH_VERSION}")
endif()

add_library(ltc_torch INTERFACE)
add_library(ltc::torch ALIAS ltc_torch)
target_include_directories(ltc_torch SYSTEM INTERFACE ${LTC_TORCH_DIR}/include ${LTC_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(ltc_torch INTERFACE ${LTC_TORCH_DIR}/lib/libtorch.so ${LTC_TORCH_DIR}/lib/libtorch_cpu.so ${LTC_TORCH_DIR}/lib/libc10.so)
set(LTC_TORCH_RPATH "${LTC_TORCH_DIR}/lib")

# ltc_find_torch_from(<target> <folder>...): the folders, relative to the library's own, in which a library of the package finds what
# it is linked with. In an installed package torch lies beside ltc; in the build tree it lies where it was found. The library is linked
# with its final path: CMake pads a path that it changes at installation, and the loader takes the empty entry for the current folder.
function(ltc_find_torch_from target)
  list(TRANSFORM ARGN PREPEND "$ORIGIN")
  if(NOT SKBUILD)
    list(APPEND ARGN ${LTC_TORCH_RPATH})
  endif()
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()
# Types whose information libtorch keeps to itself cannot be checked for being what they are called.
if(LTC_SANITIZE MATCHES undefined)
  target_compile_options(ltc_torch INTERFACE -fno-sanitize=vptr)
endif()
if(LTC_SANITIZE)  # inlined less, PyTorch's optional guards look uninitialized to GCC
  target_compile_options(ltc_torch INTERFACE -Wno-maybe-uninitialized)
endif()
