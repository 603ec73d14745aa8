# llama.cpp as static libraries: the target `llama`, with everything it needs.

if(FERMATA_LLAMA_PREBUILT)
  include(${FERMATA_LLAMA_PREBUILT}/llama-targets.cmake)
  return()
endif()
if(NOT EXISTS ${LLAMA_CPP_DIR}/CMakeLists.txt)
  message(FATAL_ERROR "llama.cpp's source is not in ${LLAMA_CPP_DIR}: run `node scripts/setup.mjs`")
endif()

set(BUILD_SHARED_LIBS OFF)
set(LLAMA_BUILD_COMMON OFF)
set(LLAMA_BUILD_TESTS OFF)
set(LLAMA_BUILD_TOOLS OFF)
set(LLAMA_BUILD_EXAMPLES OFF)
set(LLAMA_BUILD_SERVER OFF)
set(LLAMA_BUILD_APP OFF)
set(LLAMA_BUILD_UI OFF)
set(LLAMA_USE_PREBUILT_UI OFF)
set(LLAMA_BUILD_IS_DEV OFF)
set(LLAMA_ALL_WARNINGS OFF)
# Node brings its own OpenSSL; two in one process clash.
set(LLAMA_OPENSSL OFF)
set(GGML_ALL_WARNINGS OFF)
set(GGML_CCACHE OFF)
# ggml's own thread pool, so that no OpenMP runtime is loaded into Node.
set(GGML_OPENMP OFF)
# Set in the cache, because llama.cpp's option() calls run under old policies in its subfolders.
foreach(name cuda metal vulkan)
  string(TOUPPER ${name} upper)
  if(FERMATA_BACKEND STREQUAL name)
    set(GGML_${upper} ON CACHE BOOL "" FORCE)
  else()
    set(GGML_${upper} OFF CACHE BOOL "" FORCE)
  endif()
endforeach()
if(FERMATA_CPU_LEVEL)
  # For packages: these instruction sets and no others (scripts/release/levels.mjs).
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  foreach(name SSE42 AVX AVX_VNNI AVX2 BMI2 FMA F16C AVX512 AVX512_VBMI AVX512_VNNI AVX512_BF16 AMX_TILE AMX_INT8 AMX_BF16)
    if("${name}" IN_LIST FERMATA_CPU_LEVEL)
      set(GGML_${name} ON CACHE BOOL "" FORCE)
    else()
      set(GGML_${name} OFF CACHE BOOL "" FORCE)
    endif()
  endforeach()
elseif(FERMATA_PORTABLE)
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
else()
  set(GGML_NATIVE ON CACHE BOOL "" FORCE)
endif()

add_subdirectory(${LLAMA_CPP_DIR} ${CMAKE_BINARY_DIR}/llama.cpp EXCLUDE_FROM_ALL)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(ggml-cpu PRIVATE -include ${CMAKE_CURRENT_SOURCE_DIR}/native/compat/gcc_amx.h)
  endif()
  # ggml's half-precision vector step is 128 elements: heads of 64 fall into a scalar tail, three
  # times slower at depth than the single-precision path.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mno-avx512fp16 FERMATA_HAS_NO_AVX512FP16)
  if(FERMATA_HAS_NO_AVX512FP16 AND NOT FERMATA_AVX512FP16)
    target_compile_options(ggml-cpu PRIVATE -mno-avx512fp16)
  endif()
endif()

# Our attention and products of quantized weights in place of ggml's, which stay as what they fall
# back on (native/kernels).
get_target_property(ggml_cpu_folder ggml-cpu SOURCE_DIR)
set_source_files_properties(${ggml_cpu_folder}/ggml-cpu/ops.cpp TARGET_DIRECTORY ggml-cpu PROPERTIES
  COMPILE_DEFINITIONS ggml_compute_forward_flash_attn_ext=ggml_flash_attn_ext_fallback)
set_source_files_properties(${ggml_cpu_folder}/ggml-cpu/traits.cpp TARGET_DIRECTORY ggml-cpu PROPERTIES
  COMPILE_DEFINITIONS
  "ggml_cpu_extra_compute_forward=ggml_cpu_extra_compute_forward_fallback;ggml_cpu_extra_work_size=ggml_cpu_extra_work_size_fallback")
set_source_files_properties(${ggml_cpu_folder}/ggml-cpu/amx/amx.cpp TARGET_DIRECTORY ggml-cpu PROPERTIES
  COMPILE_DEFINITIONS ggml_backend_amx_buffer_type=ggml_backend_amx_buffer_type_fallback)
foreach(kernel amx_products flash_attention quantized_products)
  set(kernel_source ${CMAKE_CURRENT_SOURCE_DIR}/native/kernels/${kernel}.cpp)
  target_sources(ggml-cpu PRIVATE ${kernel_source})
  set_source_files_properties(${kernel_source} TARGET_DIRECTORY ggml-cpu
    PROPERTIES COMPILE_OPTIONS $<IF:$<CXX_COMPILER_ID:MSVC>,/std:c++20,-std=c++20>)
endforeach()
target_include_directories(ggml-cpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/native ${ggml_cpu_folder}/ggml-cpu)

# Rows of more kinds of models can be taken back.
get_target_property(llama_folder llama SOURCE_DIR)
set_source_files_properties(${llama_folder}/llama-arch.cpp TARGET_DIRECTORY llama PROPERTIES
  COMPILE_DEFINITIONS llm_arch_supports_rs_rollback=llm_arch_supports_rs_rollback_by_llama)
set(undo_kinds ${CMAKE_CURRENT_SOURCE_DIR}/native/compat/undo_kinds.cpp)
target_sources(llama PRIVATE ${undo_kinds})
set_source_files_properties(${undo_kinds} TARGET_DIRECTORY llama
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Lets another clone link these archives instead of compiling them again (scripts/setup/shared-llama.mjs).
set(llama_parts llama ggml ggml-base)
foreach(part ggml-cpu ggml-blas ggml-cuda ggml-metal ggml-vulkan)
  if(TARGET ${part})
    list(APPEND llama_parts ${part})
  endif()
endforeach()
export(TARGETS ${llama_parts} FILE ${CMAKE_BINARY_DIR}/llama-targets.cmake)
