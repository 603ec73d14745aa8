# test/native/<layer>_<subject>.cpp is one executable; its layer decides what it may link.
# They are built by the target native_tests only, so that starting the server does not compile them.

# Most of it runs once: it takes longer to optimise than to run.
function(fermata_test_code target)
  fermata_own_code(${target})
  target_compile_options(${target} PRIVATE -Og)
  # A library is then compiled as a program is.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  fermata_precompile(${target} native_test_support)
endfunction()

# What tests share: checks, fakes.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/native/support/*.cpp)
add_library(native_test_support STATIC EXCLUDE_FROM_ALL ${sources})
fermata_test_code(native_test_support)
target_include_directories(native_test_support PUBLIC ${PROJECT_SOURCE_DIR}/test/native/support)
target_link_libraries(native_test_support PUBLIC fermata_core)

add_custom_target(native_tests)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/native/*.cpp)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  if(name MATCHES "^core_")
    set(layers fermata_core)
  elseif(name MATCHES "^runtime_")
    set(layers fermata_core fermata_runtime)
  elseif(name MATCHES "^guidance_")
    set(layers fermata_core fermata_guidance)
  elseif(name MATCHES "^llama_")
    set(layers fermata_core fermata_runtime fermata_llama fermata_guidance)
  else()
    message(FATAL_ERROR "${source}: a native test's name begins with core_, runtime_, guidance_ or llama_")
  endif()
  if(FERMATA_SANITIZE AND name MATCHES "^llama_")
    continue()
  endif()
  # core has no thread.
  if(FERMATA_SANITIZE STREQUAL "thread" AND name MATCHES "^core_")
    continue()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  fermata_test_code(${name})
  target_link_libraries(${name} PRIVATE native_test_support ${layers})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  # Models compute on all cores.
  if(name MATCHES "^llama_")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  add_dependencies(native_tests ${name})
endforeach()

# Programs for people: as_f32 makes what test:exactness needs, the other two measure.
if(NOT FERMATA_SANITIZE)
  foreach(name as_f32 time_samplers time_products)
    add_executable(${name} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/test/native/tools/${name}.cpp)
    fermata_own_code(${name})
    target_link_libraries(${name} PRIVATE fermata_llama)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  endforeach()
endif()
