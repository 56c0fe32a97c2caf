# How every Helenus target is compiled, and the seven kinds of target there are.
#
#   helenus_library([HOT] NAME base SOURCES ... DEPENDS fmt::fmt [APART ...])
#                                                                  a static library a folder
#   helenus_test(NAME base_test SOURCES ... DEPENDS base [LABELS memory threads] [SHARDS 2]
#                [APART ...])
#   helenus_test_support(NAME runtime_contract SOURCES ... DEPENDS runtime)    shared by tests
#   helenus_benchmark(NAME await SOURCES ... DEPENDS runtime)      the program bench-await
#   helenus_program(NAME helenus-sim SOURCES ... DEPENDS sim)
#   helenus_fuzzer(NAME codec SOURCES ... DEPENDS base [MUTATIONS 1000])
#                                                                  the program fuzz-codec, in asan
#   helenus_scenario(NAME echo SEEDS_TEST 100 SEEDS_ASAN 10 SEEDS_LONG 1000 [FAILED 17 4711])
#
# ./test runs a test labelled `memory` under the asan preset, one labelled `threads` under tsan, and
# those that are not labelled `memory` in release; the targets tests-memory, tests-threads and
# tests-plain build just those. tests-plain builds the programs for users, too. The target tests
# builds all of them, but no benchmark. A test labelled `long` runs in ./test --long only.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

set(HELENUS_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")
set(HELENUS_MARCH "x86-64-v3" CACHE STRING "Value of -march=, empty for the compiler's default")
# Tests are compiled with little or no optimisation: optimising (and instrumenting) what the test
# libraries inline takes half of their compile time and finds nothing. So are the mains of programs
# under a sanitizer; those that users run are not.
set(HELENUS_TEST_FLAGS "" CACHE STRING "Further compiler flags for tests")
separate_arguments(HELENUS_TEST_FLAGS UNIX_COMMAND "${HELENUS_TEST_FLAGS}")
option(HELENUS_SLOW_ASSERTS "Keep ASSERT_SLOW in the build" OFF)
option(HELENUS_FUZZ "Compile everything for coverage-guided fuzzing" OFF)

# What only some need. ./run leaves both off and so needs fewer packages; objects do not depend on
# either of them.
option(HELENUS_TESTS "Tests, and the packages they need" ON)
option(HELENUS_BENCH "Benchmarks, and the packages they need" OFF)
set(HELENUS_TEST_SECONDS 600)

# dev precompiles no headers of libraries: a source that forgets an include does not compile
# there.
set(HELENUS_PRECOMPILE "" CACHE STRING "Whose headers are precompiled: tests, libraries, both")

# Several sources of a target at a time, as one: what they include is read and what they inline is
# compiled once, which more than halves the work. Names of unnamed namespaces are then those of all
# of them; a source whose names another of its target has, too, is compiled APART. Not for dev,
# where a change should rebuild little and a source must stand alone.
option(HELENUS_UNITY "Compile several sources of a target as one" OFF)
set(HELENUS_UNITY_SOURCES 16)

# Compiles the sources of a target together, but for those whose file names are in the list.
function(helenus_unity target)
  if(NOT HELENUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HELENUS_UNITY_SOURCES})
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    if(file IN_LIST ARGN)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# Sloppiness: a precompiled header has no times in it, and tools/precompile writes the checksum that
# stands for it.
find_program(HELENUS_CCACHE ccache)
if(HELENUS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      "${HELENUS_CCACHE}")
endif()

add_library(helenus_flags INTERFACE)
target_include_directories(helenus_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(helenus_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wnull-dereference -Wimplicit-fallthrough -Wthread-safety -Werror
  -fno-omit-frame-pointer "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
# -rdynamic: the backtrace of an assertion names functions.
target_link_options(helenus_flags INTERFACE -fuse-ld=lld -rdynamic)
if(HELENUS_MARCH AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(helenus_flags INTERFACE "-march=${HELENUS_MARCH}")
endif()
if(HELENUS_SLOW_ASSERTS)
  target_compile_definitions(helenus_flags INTERFACE HELENUS_SLOW_ASSERTS=1)
endif()
if(HELENUS_SANITIZE)
  target_compile_options(helenus_flags INTERFACE
    "-fsanitize=${HELENUS_SANITIZE}" -fno-sanitize-recover=all)
  target_link_options(helenus_flags INTERFACE "-fsanitize=${HELENUS_SANITIZE}")
endif()
if(HELENUS_FUZZ)
  target_compile_options(helenus_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# One precompiled header for the tests and one for the libraries: all targets of a kind have the
# same flags, but for definitions that none of these headers reads.
function(helenus_precompiled_headers kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;OPTIONS;DEPENDS" ${ARGN})
  set(owner precompiled_${kind})
  set(source "${CMAKE_BINARY_DIR}/precompiled/${kind}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${owner} OBJECT EXCLUDE_FROM_ALL "${source}")
  # What these libraries define is defined wherever base is linked.
  target_link_libraries(${owner} PRIVATE helenus_flags fmt::fmt spdlog::spdlog ${ARG_DEPENDS})
  target_compile_options(${owner} PRIVATE ${ARG_OPTIONS} "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${owner} PRIVATE ${ARG_HEADERS})
  set_target_properties(${owner} PROPERTIES
    CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/tools/precompile")
endfunction()

function(helenus_use_precompiled_headers target kind)
  if(TARGET precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  endif()
endfunction()

set(library_headers
  <algorithm> <array> <bit> <chrono> <compare> <concepts> <coroutine> <cstdint> <cstring> <expected>
  <functional> <map> <memory> <optional> <span> <string> <string_view> <tuple> <utility> <variant>
  <vector> <fmt/format.h>)
set(test_headers ${library_headers}
  <fstream> <set> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)
foreach(header IN ITEMS base/assert.h base/bytes.h base/codec.h base/result.h runtime/file_system.h
                        runtime/runtime.h runtime/sleep.h runtime/task_group.h runtime/transport.h)
  list(APPEND library_headers "<${header}>")
  list(APPEND test_headers "<${header}>")
endforeach()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # CMake's own value passes full paths behind -Xclang. ccache takes those as they are, and another
  # clone would get nothing from the cache.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
  if("libraries" IN_LIST HELENUS_PRECOMPILE)
    helenus_precompiled_headers(libraries HEADERS ${library_headers})
  endif()
  if("tests" IN_LIST HELENUS_PRECOMPILE AND HELENUS_TESTS)
    helenus_precompiled_headers(tests HEADERS ${test_headers} OPTIONS ${HELENUS_TEST_FLAGS}
                                DEPENDS GTest::gmock)
  endif()
endif()

add_custom_target(tests)
add_custom_target(tests-plain)
add_custom_target(tests-memory)
add_custom_target(tests-threads)
add_custom_target(tests-fuzz)

# A HOT library is optimised under the sanitizers, too, where all others are not: compiling them
# unoptimised takes a third of the time. It shares no precompiled header, which is of one level.
function(helenus_library)
  cmake_parse_arguments(ARG "HOT" "NAME" "SOURCES;DEPENDS;APART" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC helenus_flags ${ARG_DEPENDS})
  if(ARG_HOT AND HELENUS_SANITIZE)
    target_compile_options(${ARG_NAME} PRIVATE -O1)
  else()
    helenus_use_precompiled_headers(${ARG_NAME} libraries)
  endif()
  helenus_unity(${ARG_NAME} ${ARG_APART})
endfunction()

function(helenus_executable)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE helenus_flags ${ARG_DEPENDS})
endfunction()

function(helenus_program)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  helenus_executable(${ARGN})
  if(HELENUS_SANITIZE)
    target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  endif()
  add_dependencies(tests ${ARG_NAME})
  add_dependencies(tests-plain ${ARG_NAME})
endfunction()

function(helenus_benchmark)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  helenus_executable(NAME bench-${ARG_NAME} SOURCES ${ARG_SOURCES}
                     DEPENDS ${ARG_DEPENDS} bench_support)
endfunction()

# Stands for a test where there are none, so that its folder can still set properties of it. Nothing
# builds it.
function(helenus_left_out name)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
endfunction()

# One gtest program a module, which is one ctest test, or a few that share its cases out among them.
# tools/run_cases.py leaves what became of each case for tools/test_summary.py. The program's time
# limit is there for one that hangs; tools/test_summary.py knows how long a case may take.
function(helenus_test)
  cmake_parse_arguments(ARG "" "NAME;SHARDS" "SOURCES;DEPENDS;LABELS;APART" ${ARGN})
  if(NOT HELENUS_TESTS)
    helenus_left_out(${ARG_NAME} ${ARG_SOURCES})
    return()
  endif()
  helenus_executable(NAME ${ARG_NAME} SOURCES ${ARG_SOURCES}
                     DEPENDS ${ARG_DEPENDS} GTest::gmock_main)
  target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  helenus_unity(${ARG_NAME} ${ARG_APART})
  helenus_use_precompiled_headers(${ARG_NAME} tests)
  add_dependencies(tests ${ARG_NAME})
  if(NOT "memory" IN_LIST ARG_LABELS)
    add_dependencies(tests-plain ${ARG_NAME})
  endif()
  foreach(label IN LISTS ARG_LABELS)
    add_dependencies(tests-${label} ${ARG_NAME})
  endforeach()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${ARG_NAME})
    set(environment "")
    if(ARG_SHARDS GREATER 1)
      math(EXPR number "${shard} + 1")
      set(test ${ARG_NAME}.${number})
      set(environment "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endif()
    add_test(NAME ${test}
             COMMAND Python3::Interpreter "${CMAKE_SOURCE_DIR}/tools/run_cases.py"
                     "${CMAKE_BINARY_DIR}/cases/${test}.json" ${HELENUS_TEST_SECONDS}
                     $<TARGET_FILE:${ARG_NAME}>)
    math(EXPR seconds "${HELENUS_TEST_SECONDS} + 60")
    set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds} LABELS "${ARG_LABELS}"
                         ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# Objects, not an archive: from one the linker would drop every TEST_P that nothing refers to.
function(helenus_test_support)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;APART" ${ARGN})
  if(NOT HELENUS_TESTS)
    helenus_left_out(${ARG_NAME} ${ARG_SOURCES})
    return()
  endif()
  add_library(${ARG_NAME} OBJECT ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC helenus_flags ${ARG_DEPENDS} GTest::gmock)
  target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  helenus_use_precompiled_headers(${ARG_NAME} tests)
  helenus_unity(${ARG_NAME} ${ARG_APART})
endfunction()

# What hostile bytes do to a decoder. In asan the program replays corpus/NAME and a fixed number of
# fixed mutations of it, without a build of its own. In the fuzz preset, which compiles everything
# with the coverage that guides a search, it is a libFuzzer program; see fuzz/README.md.
function(helenus_fuzzer)
  if(NOT HELENUS_TESTS OR NOT HELENUS_SANITIZE MATCHES "address")
    return()
  endif()
  cmake_parse_arguments(ARG "" "NAME;MUTATIONS" "SOURCES;DEPENDS" ${ARGN})
  set(program fuzz-${ARG_NAME})
  set(corpus "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${ARG_NAME}")
  add_executable(${program} ${ARG_SOURCES})
  target_link_libraries(${program} PRIVATE helenus_flags ${ARG_DEPENDS})
  helenus_use_precompiled_headers(${program} libraries)
  if(HELENUS_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    file(GLOB seeds CONFIGURE_DEPENDS "${corpus}/*")
    list(JOIN seeds "," seeds)
    add_test(NAME fuzz.${ARG_NAME}
             COMMAND ${program} -seed=1 -max_total_time=20 -max_len=4096 -timeout=10
                     "-artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/" "-seed_inputs=${seeds}")
    set_tests_properties(fuzz.${ARG_NAME} PROPERTIES TIMEOUT 120 LABELS long)
    add_dependencies(tests-fuzz ${program})
  else()
    target_link_libraries(${program} PRIVATE fuzz_replay)
    set(mutations "")
    if(ARG_MUTATIONS)
      set(mutations --mutations ${ARG_MUTATIONS})
    endif()
    add_test(NAME fuzz.${ARG_NAME} COMMAND ${program} ${mutations} "${corpus}"
             WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
    set_tests_properties(fuzz.${ARG_NAME} PROPERTIES TIMEOUT 120 LABELS memory)
    add_dependencies(tests-memory ${program})
  endif()
  add_dependencies(tests ${program})
endfunction()

# Seeds of a scenario of helenus-sim: SEEDS_TEST of them in the presets without a sanitizer,
# SEEDS_ASAN (a tenth or so) in asan, and SEEDS_LONG more, those that follow, in ./test --long. A
# seed that ever FAILED runs in every one of them.
function(helenus_scenario)
  cmake_parse_arguments(ARG "" "NAME;SEEDS_TEST;SEEDS_ASAN;SEEDS_LONG" "FAILED" ${ARGN})
  if(NOT HELENUS_TESTS OR HELENUS_FUZZ OR HELENUS_SANITIZE MATCHES "thread")
    return()
  endif()
  set(labels "")
  set(seeds ${ARG_SEEDS_TEST})
  if(HELENUS_SANITIZE)
    set(labels memory)
    set(seeds ${ARG_SEEDS_ASAN})
    add_dependencies(tests-memory helenus-sim)
  endif()
  set(command helenus-sim --scenario ${ARG_NAME})
  set(test scenario.${ARG_NAME})
  # A few seeds need not see everything.
  set(sightings --sightings)
  if(HELENUS_SANITIZE)
    set(sightings "")
  endif()
  add_test(NAME ${test} COMMAND ${command} --from 0 --seeds ${seeds} ${sightings})
  set_tests_properties(${test} PROPERTIES TIMEOUT ${HELENUS_TEST_SECONDS} LABELS "${labels}")
  foreach(seed IN LISTS ARG_FAILED)
    add_test(NAME ${test}.seed_${seed} COMMAND ${command} --seed ${seed})
    set_tests_properties(${test}.seed_${seed} PROPERTIES
                         TIMEOUT ${HELENUS_TEST_SECONDS} LABELS "${labels}")
  endforeach()
  if(NOT HELENUS_SANITIZE AND ARG_SEEDS_LONG)
    add_test(NAME ${test}.long COMMAND ${command} --from ${seeds} --seeds ${ARG_SEEDS_LONG})
    set_tests_properties(${test}.long PROPERTIES TIMEOUT 1800 LABELS long)
  endif()
endfunction()
