# Installs the package to a new folder, builds the example in another one with nothing but
# find_package, and runs it. BUILD, EXAMPLE, COMPILER and GENERATOR come from the test.
string(RANDOM LENGTH 12 suffix)
if(DEFINED ENV{TMPDIR})
  set(home "$ENV{TMPDIR}/helenus-filters-${suffix}")
else()
  set(home "/tmp/helenus-filters-${suffix}")
endif()

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE "${home}")
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("building the library" "${CMAKE_COMMAND}" --build "${BUILD}" --target helenus_filters)
run("installing" "${CMAKE_COMMAND}" --install "${BUILD}" --component filters
    --prefix "${home}/prefix")
file(COPY "${EXAMPLE}/" DESTINATION "${home}/example")
run("configuring the example" "${CMAKE_COMMAND}" -S "${home}/example" -B "${home}/build"
    -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${home}/prefix")
run("building the example" "${CMAKE_COMMAND}" --build "${home}/build")
run("running the example" "${home}/build/filters_example" "${home}/seen.filter")
message("${output}")

# All headers together, as the example does not use them all. What is not renamed would have been
# found in the tree, or would meet the macros of others.
file(GLOB_RECURSE headers RELATIVE "${home}/prefix/include" "${home}/prefix/include/*.h")
set(includes)
foreach(header IN LISTS headers)
  string(APPEND includes "#include <${header}>\n")
  file(STRINGS "${home}/prefix/include/${header}" stray
       REGEX "#include \"(base|filters)/|[^A-Z_](ASSERT|TRY)\\(")
  if(stray)
    file(REMOVE_RECURSE "${home}")
    message(FATAL_ERROR "${header} is not fit to be installed: ${stray}")
  endif()
endforeach()
file(WRITE "${home}/headers/main.cc" "${includes}int main() {}\n")
file(WRITE "${home}/headers/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
find_package(HelenusFilters 0.1 REQUIRED)
add_executable(headers main.cc)
target_compile_options(headers PRIVATE -Wall -Wextra -Werror)
target_link_libraries(headers PRIVATE HelenusFilters::filters)
")
run("configuring all headers" "${CMAKE_COMMAND}" -S "${home}/headers" -B "${home}/headers/build"
    -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${home}/prefix")
run("building all headers" "${CMAKE_COMMAND}" --build "${home}/headers/build")
file(REMOVE_RECURSE "${home}")
