#!/usr/bin/env bash
# All that needs a GPU, in calls of under ten minutes: parts that are done are not done again.
#
#   bench/gpu.sh carry        on a machine like those that ./dev sets up: puts headers and libraries that the GPU's machine may lack
#                             into build/gpu-carry; take that folder along
#   bench/gpu.sh [PART...]    on the GPU's machine: these parts, or all that are not done yet
#   bench/gpu.sh again PART   forgets that a part was done
#
# It needs there: a CUDA driver, Python with a CUDA PyTorch, CMake, Ninja, a C++20 compiler, CUDA's headers; no network.
# Results and logs: build/gpu/, copied to $OUT where that is set. GPU_SECONDS limits a call (default 570).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD state=$PWD/build/gpu carry=$PWD/build/gpu-carry build=$PWD/build/gpu-release
python=${PYTHON:-python3}
deadline=$((SECONDS + ${GPU_SECONDS:-570}))
parts=(plugin conformance sanitizer racecheck core torchscript precision activations fp8 peers sweep models times kernels
  without_{coop_reduce,split_reduce,block_sort,attention,attention_mma,cudnn,cublas,epilogues} with_{activations,tf32})

usage() { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# ---- what is taken along

# The headers of Highway, OpenCL and nlohmann/json, those of Boost, spdlog, fmt and GoogleTest that are included, and packages that
# make CMake find them.
carry() {
  rm -rf "$carry"
  mkdir -p "$carry"/{include,lib/cmake/{Boost,spdlog,nlohmann_json,GTest}}
  printf '#include <%s>\n' boost/crc.hpp boost/dll/shared_library.hpp spdlog/spdlog.h spdlog/sinks/stdout_color_sinks.h \
    gtest/gtest.h gmock/gmock.h \
    | g++ -std=c++20 -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY -M -x c++ - | tr ' \\' '\n\n' \
    | sed -nE 's#^/usr/include/((boost|spdlog|fmt|gtest|gmock)/.*)#\1#p' | sort -u \
    | tar -C /usr/include -cf - hwy CL nlohmann -T - | tar -C "$carry/include" -xf -
  cp "$(g++ -print-file-name=libgtest.a)" "$(g++ -print-file-name=libgmock.a)" "$(g++ -print-file-name=libgmock_main.a)" "$carry/lib/"
  cat > "$carry/lib/cmake/Boost/BoostConfig.cmake" <<'CMAKE'
add_library(Boost::headers INTERFACE IMPORTED)
target_include_directories(Boost::headers INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../../include)
CMAKE
  cat > "$carry/lib/cmake/spdlog/spdlogConfig.cmake" <<'CMAKE'
add_library(spdlog::spdlog_header_only INTERFACE IMPORTED)
target_include_directories(spdlog::spdlog_header_only INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../../include)
CMAKE
  cat > "$carry/lib/cmake/nlohmann_json/nlohmann_jsonConfig.cmake" <<'CMAKE'
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../../include)
CMAKE
  cat > "$carry/lib/cmake/GTest/GTestConfig.cmake" <<'CMAKE'
find_package(Threads REQUIRED)
add_library(GTest::gmock INTERFACE IMPORTED)
target_include_directories(GTest::gmock INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../../include)
target_link_libraries(GTest::gmock INTERFACE
  ${CMAKE_CURRENT_LIST_DIR}/../../libgmock.a ${CMAKE_CURRENT_LIST_DIR}/../../libgtest.a Threads::Threads)
add_library(GTest::gmock_main INTERFACE IMPORTED)
target_link_libraries(GTest::gmock_main INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../../libgmock_main.a GTest::gmock)
CMAKE
  du -sh "$carry"
}

# ---- parts, each as its own command under a limit of time

configure() {
  export TORCH_DEVICE_BACKEND_AUTOLOAD=0  # PyTorch is asked for its paths while `ltc` is not built
  [[ -f $build/build.ninja ]] && return
  # A compiler may link its own libstdc++ into each library. Two copies in a process with PyTorch's crash, so all take the shared one.
  local shared=-Wl,--no-as-needed,-l:libstdc++.so.6,-l:libgcc_s.so.1,--as-needed
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$carry" \
    -DCMAKE_EXE_LINKER_FLAGS="$shared" -DCMAKE_SHARED_LINKER_FLAGS="$shared" -DCMAKE_MODULE_LINKER_FLAGS="$shared" \
    -DPython_EXECUTABLE="$(command -v "$python")" -DLTC_TESTS=OFF -DLTC_SAMPLES=OFF
}
plugin() { configure && ninja -k0 -C "$build" ltc_plugin_cuda ltc_conformance; }
# Values are compared in F32, so TF32, which PyTorch's defaults allow to convolutions, is off in the libraries of the first; figures
# of speed are taken as those defaults are.
exactly() { NVIDIA_TF32_OVERRIDE=0 "$@"; }
# CUDA's libraries lie among PyTorch's packages, which a program that loads no PyTorch does not find by itself.
cuda_libraries() { "$python" -c 'import glob, sysconfig; print(":".join(glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib")))'; }
with_libraries() { LTC_CUDA_PATH=$(cuda_libraries) exactly "$@"; }
suite=("$build/python/ltc/bin/ltc-conformance" --backend "$build/python/ltc/plugins/libltc_cuda.so")
conformance() { with_libraries "${suite[@]}"; }
sanitizer() {
  with_libraries compute-sanitizer --tool memcheck --error-exitcode 9 "${suite[@]}" --tier memory,execute,async,programs
}
racecheck() { with_libraries compute-sanitizer --tool racecheck --error-exitcode 9 "${suite[@]}" --tier execute,programs; }
core() { configure && ninja -k0 -C "$build"; }
torchscript() {
  LTC_TORCHSCRIPT_CUDA=1 exactly "$build/python/ltc/bin/ltc-conformance" --backend "$build/python/ltc/plugins/libltc_torchscript.so"
}
sweep() {
  export PYTHONPATH=$root/conformance:$PYTHONPATH
  exactly "$python" -m sweep --modes forward,backward --dtypes float32,bfloat16 --samples 1 --timeout 60 \
    --ops '^(add|sub|mul|div|exp|log|tanh|sigmoid|sum|mean|var|prod|amax|argmax|softmax|log_softmax|mm|bmm|matmul|addmm|cat|gather|scatter|index_select|sort|topk|cumsum|nn.functional.(linear|conv[123]d|conv_transpose2d|scaled_dot_product_attention|relu|gelu|layer_norm|batch_norm|embedding|max_pool2d|cross_entropy|dropout))$'
}
# The libraries' results under PyTorch's flags, and where they compute functions.
precision() { "$python" "$root/bench/gpu_values.py" precision; }
activations() { LTC_CUDA_WITH=activations exactly "$python" "$root/bench/gpu_values.py" activations; }
fp8() { exactly "$python" "$root/bench/gpu_values.py" fp8; }
peers() { exactly "$python" "$root/bench/gpu_values.py" peers; }
models() { exactly "$python" -m pytest -q --maxfail 5 "$root/tests/test_models.py" -k as_on_cpu; }
times() {
  "$python" "$root/bench/run.py" --against cuda --sides ltc,ltc_compile,cuda_compile,cuda_graphs \
    --workloads mlp,mnist4,lstm_unrolled,enc,chain4m,pass4m,topk,embedding,attention,gpt2,resnet18
}
# The kernels of the steps that take the GPU longest.
kernels() {
  local side
  for side in ltc cuda; do "$python" "$root/bench/gpu_kernels.py" "$side" pass4m,topk,attention,gpt2,resnet18; done
}
# The gain of each feature: the table of `times` beside the same without it.
quick_times() { "$python" "$root/bench/run.py" --quick --against cuda --sides ltc --workloads mlp,mnist4,enc,chain4m,topk,embedding,attention,gpt2,resnet18; }
without() { LTC_CUDA_WITHOUT=$1 quick_times; }  # WAY
without_coop_reduce() { without coop_reduce; }
without_split_reduce() { without split_reduce; }
without_block_sort() { without block_sort; }
without_attention() { without attention; }
without_attention_mma() { without attention_mma; }
without_cudnn() { without cudnn; }
without_cublas() { without cublas; }
without_epilogues() { without epilogues; }
with_activations() { LTC_CUDA_WITH=activations quick_times; }
with_tf32() { TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 quick_times; }

# ---- running them

limit_of() {  # PART: its own limit in seconds
  case $1 in plugin) echo 180 ;; conformance) echo 150 ;; sanitizer | racecheck) echo 240 ;; core) echo 300 ;; *) echo 280 ;; esac
}

run_part() {  # PART
  local log=$state/$1.log left=$((deadline - SECONDS)) limit began=$SECONDS code
  if [[ -f $state/$1.done ]]; then
    echo "$1: done before"
    return
  fi
  if (( left < 20 )); then
    echo "$1: no time left; call again"
    return 1
  fi
  if [[ $1 != plugin && $1 != core ]] && ! [[ -f $state/plugin.done ]]; then
    echo "$1: not run: the part plugin is not done"
    return 1
  fi
  limit=$(limit_of "$1")
  (( limit < left )) || limit=$left
  timeout -k 5 "$limit" bash "$root/bench/gpu.sh" --part "$1" >"$log" 2>&1
  code=$?
  (( code )) || touch "$state/$1.done"
  echo "$1: exit $code after $((SECONDS - began)) s (limit $limit s)"
  tail -n $(( code ? 25 : 12 )) "$log" | sed 's/^/  /'
  [[ -z ${OUT:-} ]] || cp "$log" "$OUT/"
  return "$code"
}

case ${1:-} in
  -h | --help) usage; exit ;;
  carry) carry; exit ;;
  again) rm -f "$state/${2:?which part?}.done"; exit ;;
  --part)
    export LTC_BACKEND=cuda PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH}
    "$2"
    exit
    ;;
esac
(( $# )) && parts=("$@")
mkdir -p "$state"
failed=0
for part in "${parts[@]}"; do run_part "$part" || failed=1; done
exit "$failed"
