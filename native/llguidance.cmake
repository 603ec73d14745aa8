# llguidance's C interface as the target `llguidance`, built by cargo from native/guidance/llguidance.
# Without a recent cargo there is no such target, and FERMATA_LLGUIDANCE is OFF from here on.

set(FERMATA_CARGO_TARGET "${CMAKE_BINARY_DIR}/cargo" CACHE PATH "Folder that cargo builds in")
if(NOT FERMATA_LLGUIDANCE)
  return()
endif()
set(FERMATA_LLGUIDANCE OFF)
set(crate ${CMAKE_CURRENT_SOURCE_DIR}/native/guidance/llguidance)
file(STRINGS ${crate}/Cargo.toml wanted REGEX "^rust-version")
string(REGEX MATCH "[0-9.]+" wanted "${wanted}")
# The one on PATH comes first. `npm run setup` says which it is, since a cache would keep an old one.
find_program(CARGO cargo PATHS ENV CARGO_HOME $ENV{HOME}/.cargo PATH_SUFFIXES bin)
if(CARGO)
  # In the crate's folder, where rustup's choice of a toolchain applies.
  execute_process(COMMAND ${CARGO} --version WORKING_DIRECTORY ${crate}
    OUTPUT_VARIABLE version RESULT_VARIABLE failed ERROR_QUIET)
  string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+" version "${version}")
endif()
if(NOT CARGO OR failed OR version VERSION_LESS wanted)
  message(STATUS "Without llguidance: cargo ${wanted} or newer is not here (https://rustup.rs)")
  return()
endif()

set(FERMATA_LLGUIDANCE ON)
set(target_dir ${FERMATA_CARGO_TARGET})
set(archive ${target_dir}/release/libfermata_llguidance.a)
add_custom_command(
  OUTPUT ${archive}
  COMMAND ${CARGO} build --release --locked --quiet --target-dir ${target_dir}
  WORKING_DIRECTORY ${crate}
  DEPENDS ${crate}/Cargo.toml ${crate}/Cargo.lock ${crate}/src/lib.rs
  COMMENT "Building llguidance with cargo"
  VERBATIM)
add_custom_target(llguidance_build DEPENDS ${archive})
add_library(llguidance STATIC IMPORTED GLOBAL)
add_dependencies(llguidance llguidance_build)
# The crate's build copies its header there.
file(MAKE_DIRECTORY ${target_dir}/release)
set_target_properties(llguidance PROPERTIES IMPORTED_LOCATION ${archive})
target_include_directories(llguidance SYSTEM INTERFACE ${target_dir}/release)
target_link_libraries(llguidance INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
