# Reads tables that rpexplore has released, or exported, into data frames with standard errors.
# Base R only.
#
#   source("rpexplore.R")
#   release <- read_release("the folder of the release, or of the export")
#   release                                        # what is promised, and which tables there are
#   table <- release_table(release, "age", "sex")  # value, standard_error, lower_95, upper_95
#   release[["age x sex"]]                         # the same
#
# The errors of different cells go together, so a sum of cells has another standard error than theirs
# suggest; where there is a smaller table, use its cell.

# All tables of a folder, or those of `tables`, a list of vectors of names of attributes.
read_release <- function(folder, tables = NULL) {
  released <- file.path(folder, "manifest.json")
  exported <- file.path(folder, "datapackage.json")
  if (file.exists(released)) {
    found <- .rpexplore_manifest(folder, .rpexplore_json(released))
  } else if (file.exists(exported)) {
    found <- .rpexplore_package(.rpexplore_json(exported))
  } else {
    stop("'", folder, "' has no manifest.json and no datapackage.json; name the folder of a ",
         "finished release, or of an export with --format frictionless.", call. = FALSE)
  }
  files <- found$files
  if (!is.null(tables)) {
    keys <- vapply(files, function(file) .rpexplore_key(file$attributes), "")
    wanted <- match(vapply(tables, .rpexplore_key, ""), keys)
    if (anyNA(wanted)) {
      stop("there is no table of (", paste(tables[[which(is.na(wanted))[1]]], collapse = " x "),
           ") here; choose one of those that were released.", call. = FALSE)
    }
    files <- files[wanted]
  }
  frames <- lapply(files, function(file) .rpexplore_table(folder, file))
  names(frames) <- vapply(files, function(file) file$name, "")
  structure(frames, class = "rpexplore_release", facts = found$facts,
            attributes = lapply(files, function(file) file$attributes))
}

# The table of these attributes, in whichever order; of amounts, sums and counts. Their means are
# release[["sex x income (means)"]].
release_table <- function(release, ...) {
  keys <- vapply(attr(release, "attributes"), .rpexplore_key, "")
  position <- match(.rpexplore_key(c(...)), keys)
  if (is.na(position)) {
    stop("there is no table of (", paste(c(...), collapse = " x "), ") here; choose one of ",
         paste(utils::head(names(release), 6), collapse = ", "), " ...", call. = FALSE)
  }
  release[[position]]
}

print.rpexplore_release <- function(x, ...) {
  cat(strwrap(attr(x, "facts")$guarantee), sep = "\n")
  cat("\n", length(x), " tables: ", paste(utils::head(names(x), 10), collapse = ", "),
      if (length(x) > 10) ", ...", "\n", sep = "")
  invisible(x)
}

# ---- which files there are

.rpexplore_key <- function(attributes) paste(sort(as.character(attributes)), collapse = "\r")

.rpexplore_name <- function(attributes) {
  if (length(attributes)) paste(attributes, collapse = " x ") else "total"
}

.rpexplore_manifest <- function(folder, manifest) {
  is_table <- function(entry) !is.null(entry$attributes) || grepl("(^|/)answers\\.", entry$path)
  entries <- Filter(is_table, manifest$files)
  paths <- vapply(entries, function(entry) entry$path, "")
  csv <- endsWith(paths, ".csv")
  if (any(csv)) {
    entries <- entries[csv]
  } else if (requireNamespace("arrow", quietly = TRUE)) {
    entries <- entries[endsWith(paths, ".parquet")]
  } else {
    stop("'", folder, "' has Parquet files only, for which R needs the package arrow; install it, ",
         "or export the tables with `rpexplore publish`.", call. = FALSE)
  }
  files <- lapply(entries, function(entry) {
    attributes <- as.character(unlist(entry$attributes))
    name <- if (grepl("(^|/)answers\\.", entry$path)) "answers" else .rpexplore_name(attributes)
    if (grepl("(^|/)means/", entry$path)) name <- paste(name, "(means)")
    # Tables in areas have a folder of files each, tables/2_town/0003_age_sex.
    folders <- strsplit(entry$path, "/", fixed = TRUE)[[1]]
    if (length(folders) > 3 && endsWith(entry$path, ".parquet")) {
      level <- sub("^[0-9]+_", "", folders[length(folders) - 2])
      attributes <- c(level, setdiff(attributes, level))
      name <- .rpexplore_name(attributes)
    }
    table <- if (length(folders) > 3) dirname(entry$path) else entry$path
    list(path = entry$path, bytes = entry$bytes, attributes = attributes, name = name,
         table = table)
  })
  # Files of one table are read together.
  tables <- vapply(files, function(file) file$table, "")
  files <- lapply(unique(tables), function(table) {
    same <- files[tables == table]
    list(path = vapply(same, function(file) file$path, ""),
         bytes = vapply(same, function(file) file$bytes, 0),
         attributes = same[[1]]$attributes, name = same[[1]]$name)
  })
  facts <- manifest[intersect(c("guarantee", "privacy_unit", "rho", "label"), names(manifest))]
  list(files = files, facts = facts)
}

.rpexplore_package <- function(package) {
  files <- lapply(package$resources, function(resource) {
    attributes <- as.character(unlist(resource$dimensions))
    name <- .rpexplore_name(attributes)
    # Beside the sums of the same attributes.
    of_means <- paste(paste(attributes, collapse = " \u00d7 "), "(means)")
    if (identical(resource$title, of_means)) name <- paste(name, "(means)")
    list(path = resource$path, bytes = resource$bytes, attributes = attributes, name = name)
  })
  list(files = files, facts = package$privacy)
}

.rpexplore_table <- function(folder, file) {
  path <- file.path(folder, file$path)
  changed <- is.na(file.size(path)) | file.size(path) != file$bytes
  if (any(changed)) {
    stop("the file '", path[changed][1], "' is missing or was changed since; use the original ",
         "folder.", call. = FALSE)
  }
  if (endsWith(path[1], ".parquet")) {
    frame <- do.call(rbind, lapply(path, function(one) as.data.frame(arrow::read_parquet(one))))
    return(as.data.frame(lapply(frame, function(column) {
      if (is.factor(column)) as.character(column) else column
    }), check.names = FALSE))
  }
  # Texts are in quotation marks in these files, numbers are not; columns may have any name.
  start <- readChar(path, min(file.size(path), 1e6), useBytes = TRUE)
  rows <- strsplit(gsub("\"(?:[^\"]|\"\")*+\"", "q", start, perl = TRUE, useBytes = TRUE), "\n",
                   fixed = TRUE, useBytes = TRUE)[[1]]
  fields <- strsplit(paste0(rows[2], ","), ",", fixed = TRUE, useBytes = TRUE)[[1]]
  kinds <- ifelse(fields == "q", "character",
                  ifelse(fields %in% c("true", "false"), "logical", "numeric"))
  utils::read.csv(path, check.names = FALSE, colClasses = unname(kinds), encoding = "UTF-8",
                  na.strings = "")
}

# ---- JSON

.rpexplore_json <- function(path) {
  text <- readChar(path, file.size(path), useBytes = TRUE)
  token <- paste0("\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|",
                  "-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|[\\[\\]{},:]")
  tokens <- regmatches(text, gregexpr(token, text, perl = TRUE, useBytes = TRUE))[[1]]
  position <- 0
  following <- function() {
    position <<- position + 1
    tokens[position]
  }
  value <- function() {
    token <- following()
    if (token == "{") {
      fields <- list()
      while (tokens[position + 1] != "}") {
        name <- .rpexplore_text(following())
        following()  # the colon
        fields[name] <- list(value())
        if (tokens[position + 1] == ",") following()
      }
      following()
      fields
    } else if (token == "[") {
      items <- list()
      while (tokens[position + 1] != "]") {
        items[length(items) + 1] <- list(value())
        if (tokens[position + 1] == ",") following()
      }
      following()
      items
    } else if (startsWith(token, "\"")) {
      .rpexplore_text(token)
    } else {
      switch(token, true = TRUE, false = FALSE, null = NULL, as.numeric(token))
    }
  }
  value()
}

.rpexplore_text <- function(token) {
  text <- substr(token, 2, nchar(token, "bytes") - 1)
  Encoding(text) <- "UTF-8"
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  escapes <- regmatches(text, gregexpr("\\\\(u[0-9a-fA-F]{4}|.)", text))[[1]]
  plain <- vapply(escapes, function(escape) {
    sign <- substr(escape, 2, 2)
    if (sign == "u") return(intToUtf8(strtoi(substr(escape, 3, 6), 16L)))
    switch(sign, n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", sign)
  }, "")
  regmatches(text, gregexpr("\\\\(u[0-9a-fA-F]{4}|.)", text)) <- list(unname(plain))
  text
}
