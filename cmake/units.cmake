# Sources of one folder are compiled several at a time, in units: what they include is parsed once a unit, and templates
# are instantiated once. Names in unnamed namespaces are therefore unique within a folder, and a test has a namespace of
# its own. -DGRADUS_UNITS=OFF compiles file by file, which is quicker after a change of one file (docs/contributing.md).
option(GRADUS_UNITS "Compile several sources of a folder at a time" ON)

# gradus_units(target size sources...): units of at most `size` of these sources. CMake leaves out each source that has
# compile options or definitions of its own.
function(gradus_units target size)
  if(NOT GRADUS_UNITS)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(folders)
  foreach(source ${ARGN})
    get_property(own SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    if(own)  # in no unit, so that it fills none
      continue()
    endif()
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    get_filename_component(folder ${path} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND sources_of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    set(place 0)
    foreach(source ${sources_of_${folder}})
      math(EXPR unit "${place} / ${size}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${unit})
      math(EXPR place "${place} + 1")
    endforeach()
  endforeach()
endfunction()
