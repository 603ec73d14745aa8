# What the backends for devices need before llama.cpp is configured, and where it was compiled before.

if(FERMATA_BACKEND STREQUAL "cuda")
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    # Nothing: native/devices/cuda_driver.cpp is in its place.
    add_library(CUDA::cuda_driver INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  # "native", which ggml would choose, asks the GPU of the machine that builds.
  if(DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS} CACHE STRING "" FORCE)
  endif()
elseif(FERMATA_BACKEND STREQUAL "vulkan")
  find_package(Vulkan REQUIRED)
endif()

# Called when llama.cpp's targets are there.
function(fermata_add_device_sources)
  if(FERMATA_BACKEND STREQUAL "cuda" AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT FERMATA_LLAMA_PREBUILT)
    target_sources(ggml-cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/native/devices/cuda_driver.cpp)
    target_include_directories(ggml-cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(ggml-cuda PRIVATE ${CMAKE_DL_LIBS})
  endif()
endfunction()
